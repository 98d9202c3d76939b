-- A page of transactions of some accounts; other filters that are null or empty are ignored.
--
-- $workchain           integer   = null   workchain of the block
-- $shard               bigint    = null   shard of the block
-- $block_seqno         bigint    = null   seqno of the block
-- $mc_seqno            bigint    = null   masterchain block that commits it
-- $workchains          integer[]          workchains of the accounts
-- $accounts            blob[]             accounts
-- $excluded_workchains integer[] = []     workchains of the excluded accounts
-- $excluded_accounts   blob[]    = []     excluded accounts
-- $hashes              blob[]    = []     hashes; empty: any
-- $lt                  bigint    = null   logical time; accounts then follow $descending
-- $aborted             boolean   = null   whether it was aborted
-- $start_utime         bigint    = null   first unix second
-- $end_utime           bigint    = null   last unix second
-- $start_lt            bigint    = null   first logical time
-- $end_lt              bigint    = null   last logical time
-- $by_time             boolean   = false  order by time before logical time
-- $descending          boolean   = true   newest first; equal logical times by account
-- $limit               integer            maximum number of rows
-- $offset              integer   = 0      rows to skip
--
-- returns: hash, lt; in order
select
    hash,
    lt
from transactions_page(
    'transactions', $workchain, $shard, $block_seqno, $mc_seqno, $lt, $aborted,
    $start_utime, $end_utime, $start_lt, $end_lt,
    $hashes, $excluded_workchains, $excluded_accounts
)
where in_pairs(workchain, account, $workchains, $accounts)
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
