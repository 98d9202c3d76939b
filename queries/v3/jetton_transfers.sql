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
    (
        len($accounts::blob[]) = 0
        or (workchain, account) in (
            select
                unnest($workchains::integer[]),
                unnest($accounts::blob[])
        )
    )
    and (
        len($jettons::blob[]) = 0
        or (jetton_workchain, jetton) in (
            select
                unnest($jetton_workchains::integer[]),
                unnest($jettons::blob[])
        )
    )
    and not aborted
    and (
        len($owners::blob[]) = 0
        or (
            $outgoing
            and (source_workchain, source) in (
                select
                    unnest($owner_workchains::integer[]),
                    unnest($owners::blob[])
            )
        )
        or (
            $incoming
            and (destination_workchain, destination) in (
                select
                    unnest($owner_workchains::integer[]),
                    unnest($owners::blob[])
            )
        )
    )
    and ($start_utime is null or now >= $start_utime)
    and ($end_utime is null or now <= $end_utime)
    and ($start_lt is null or lt >= $start_lt)
    and ($end_lt is null or lt <= $end_lt)
order by
    case when $descending then if($by_time, now, lt) end desc,
    case when not $descending then if($by_time, now, lt) end,
    case when $descending then lt end desc,
    case when not $descending then lt end,
    workchain,
    account
limit $limit
offset $offset
