-- A page of jetton burns, aborted ones included.
--
-- $workchains        integer[] = []     workchains of the jetton wallets
-- $accounts          blob[]    = []     jetton wallets; empty: any
-- $jetton_workchains integer[] = []     workchains of the masters
-- $jettons           blob[]    = []     masters; empty: any
-- $owner_workchains  integer[] = []     workchains of the owners
-- $owners            blob[]    = []     owners; empty: any
-- $start_utime       bigint    = null   first unix second
-- $end_utime         bigint    = null   last unix second
-- $start_lt          bigint    = null   first logical time
-- $end_lt            bigint    = null   last logical time
-- $by_time           boolean   = false  order by time before logical time
-- $descending        boolean   = true   newest first
-- $limit             integer            maximum number of rows
-- $offset            integer   = 0      rows to skip
--
-- returns: the columns of jetton_burns; in order
select
    workchain,
    account,
    lt,
    mc_seqno,
    now,
    tx_hash,
    aborted,
    query_id,
    jetton_workchain,
    jetton,
    owner_workchain,
    owner,
    amount,
    response_destination_workchain,
    response_destination,
    custom_payload
from jetton_burns
where
    in_pairs_or_any(workchain, account, $workchains, $accounts)
    and in_pairs_or_any(jetton_workchain, jetton, $jetton_workchains, $jettons)
    and in_pairs_or_any(owner_workchain, owner, $owner_workchains, $owners)
    and in_range(now, $start_utime, $end_utime)
    and in_range(lt, $start_lt, $end_lt)
order by
    case when $descending then if($by_time, now, lt) end desc,
    case when not $descending then if($by_time, now, lt) end,
    case when $descending then lt end desc,
    case when not $descending then lt end,
    workchain,
    account
limit $limit
offset $offset
