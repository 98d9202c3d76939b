-- A page of jetton transfers, without aborted ones.
--
-- $workchains        integer[] = []     workchains of the jetton wallets of the senders
-- $accounts          blob[]    = []     jetton wallets of the senders; empty: any
-- $jetton_workchains integer[] = []     workchains of the masters
-- $jettons           blob[]    = []     masters; empty: any
-- $owner_workchains  integer[] = []     workchains of the owners
-- $owners            blob[]    = []     owners; empty: any
-- $outgoing          boolean   = true   include transfers sent by the owners
-- $incoming          boolean   = true   include transfers received by the owners
-- $start_utime       bigint    = null   first unix second
-- $end_utime         bigint    = null   last unix second
-- $start_lt          bigint    = null   first logical time
-- $end_lt            bigint    = null   last logical time
-- $by_time           boolean   = false  order by time before logical time
-- $descending        boolean   = true   newest first
-- $limit             integer            maximum number of rows
-- $offset            integer   = 0      rows to skip
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
    and is_move_of(
        source_workchain, source, destination_workchain, destination,
        $owner_workchains, $owners, $outgoing, $incoming
    )
    and not aborted
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
