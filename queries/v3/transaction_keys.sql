-- A page of transactions by any filters; one that is null or empty filters nothing.
--
-- $workchain           integer   = null  workchain of the block
-- $shard               bigint    = null  shard of the block
-- $block_seqno         bigint    = null  seqno of the block
-- $mc_seqno            bigint    = null  masterchain block that commits it
-- $workchains          integer[] = null  workchains of the accounts
-- $accounts            blob[]    = null  accounts; null: any
-- $excluded_workchains integer[]         workchains of the excluded accounts
-- $excluded_accounts   blob[]            excluded accounts
-- $hashes              blob[]            hashes
-- $lt                  bigint    = null  logical time; accounts are then in the order asked for
-- $aborted             boolean   = null  whether it was aborted
-- $start_utime         bigint    = null  first unix second
-- $end_utime           bigint    = null  last unix second
-- $start_lt            bigint    = null  first logical time
-- $end_lt              bigint    = null  last logical time
-- $by_time             boolean   = false order by time before logical time
-- $descending          boolean   = true  highest first; accounts of one logical time ascend
-- $limit               integer           most rows
-- $offset              integer   = 0     rows to skip
--
-- returns: hash, lt; in order
with of_accounts as (
    select
        workchain,
        account,
        shard,
        block_seqno,
        mc_seqno,
        hash,
        lt,
        now,
        aborted
    from transactions
    where in_pairs(workchain, account, $workchains, $accounts)
)

select
    hash,
    lt
from either($accounts is null, 'transactions', 'of_accounts')
where
    equal_or_any(workchain, $workchain)
    and equal_or_any(shard, $shard)
    and equal_or_any(block_seqno, $block_seqno)
    and equal_or_any(mc_seqno, $mc_seqno)
    and equal_or_any(lt, $lt)
    and equal_or_any(aborted, $aborted)
    and in_range(now, $start_utime, $end_utime)
    and in_range(lt, $start_lt, $end_lt)
    and (len($hashes::blob[]) = 0 or list_contains($hashes::blob[], hash))
    and (
        len($excluded_accounts::blob[]) = 0
        or not list_contains(
            list_zip($excluded_workchains::integer[], $excluded_accounts::blob[]),
            row(workchain, account)
        )
    )
order by
    case when $descending then if($by_time, now, lt) end desc,
    case when not $descending then if($by_time, now, lt) end,
    case when $descending then lt end desc,
    case when not $descending then lt end,
    case when $descending and $lt is not null and $mc_seqno is null then workchain end desc,
    case when $descending and $lt is not null and $mc_seqno is null then account end desc,
    workchain,
    account
limit $limit
offset $offset
