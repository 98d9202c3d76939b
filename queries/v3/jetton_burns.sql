-- A page of burns of jettons, aborted ones included.
--
-- $workchains        integer[]          workchains of the jetton wallets; none: any
-- $accounts          blob[]             jetton wallets
-- $jetton_workchains integer[]          workchains of the masters; none: any
-- $jettons           blob[]             masters
-- $owner_workchains  integer[]          workchains of the owners; none: any
-- $owners            blob[]             owners
-- $start_utime       bigint    = null   first unix second
-- $end_utime         bigint    = null   last unix second
-- $start_lt          bigint    = null   first logical time
-- $end_lt            bigint    = null   last logical time
-- $by_time           boolean   = false  order by time before logical time
-- $descending        boolean   = true   newest first
-- $limit             integer            most rows
-- $offset            integer   = 0      rows to pass over
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
