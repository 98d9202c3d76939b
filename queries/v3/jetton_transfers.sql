-- A page of transfers of jettons; those that were aborted moved nothing and are left out.
--
-- $workchains        integer[]          workchains of the jetton wallets of the senders; none: any
-- $accounts          blob[]             jetton wallets of the senders
-- $jetton_workchains integer[]          workchains of the masters; none: any
-- $jettons           blob[]             masters
-- $owner_workchains  integer[]          workchains of the owners; none: any
-- $owners            blob[]             owners
-- $outgoing          boolean   = true   owners may have sent
-- $incoming          boolean   = true   owners may have received
-- $start_utime       bigint    = null   first unix second
-- $end_utime         bigint    = null   last unix second
-- $start_lt          bigint    = null   first logical time
-- $end_lt            bigint    = null   last logical time
-- $by_time           boolean   = false  order by time before logical time
-- $descending        boolean   = true   newest first
-- $limit             integer            most rows
-- $offset            integer   = 0      rows to pass over
--
-- returns: the columns of jetton_transfers; in order
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
    source_workchain,
    source,
    destination_workchain,
    destination,
    amount,
    response_destination_workchain,
    response_destination,
    forward_ton_amount,
    custom_payload,
    forward_payload,
    forward_payload_inline
from jetton_transfers
where
    in_pairs_or_any(workchain, account, $workchains, $accounts)
    and in_pairs_or_any(jetton_workchain, jetton, $jetton_workchains, $jettons)
    and not aborted
    and moves_of(
        source_workchain, source, destination_workchain, destination,
        $owner_workchains, $owners, $outgoing, $incoming
    )
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
