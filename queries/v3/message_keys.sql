-- A page of messages by any filters; both ends of a message form one row.
--
-- $msg_hashes            blob[]  = []     hashes, as stored or normalized; empty: any
-- $body_hash             blob    = null   hash of the body
-- $opcode                integer = null   opcode, signed
-- $direction             text    = null   only this end: in (consumed) or out (produced)
-- $source_workchain      integer = null   workchain of the source
-- $source                blob    = null   source
-- $no_source             boolean = false  only messages that have no source
-- $destination_workchain integer = null   workchain of the destination
-- $destination           blob    = null   destination
-- $no_destination        boolean = false  only messages that have no destination
-- $exclude_externals     boolean = false  only messages with a time of creation
-- $only_externals        boolean = false  only messages without one
-- $start_utime           bigint  = null   first unix second of creation
-- $end_utime             bigint  = null   last unix second of creation
-- $start_lt              bigint  = null   first logical time of creation
-- $end_lt                bigint  = null   last logical time of creation
-- $by_time               boolean = false  order by time instead of logical time of creation
-- $descending            boolean = true   newest first, messages without time before them
-- $limit                 integer          maximum number of rows
-- $offset                integer = 0      rows to skip
--
-- returns: msg_hash; in_tx_hash, out_tx_hash: the last transactions at its ends;
-- tx_hash, tx_lt: the last of all, where the message can be read; in order
select
    msg_hash,
    arg_max(tx_hash, tx_lt) filter (where direction = 'in') as in_tx_hash,
    arg_max(tx_hash, tx_lt) filter (where direction = 'out') as out_tx_hash,
    arg_max(tx_hash, tx_lt) as tx_hash,
    max(tx_lt) as tx_lt
from messages
where
    equal_or_any(body_hash, $body_hash)
    and equal_or_any(opcode, $opcode)
    and equal_or_any(direction, $direction)
    and address_or_any(source_workchain, source, $source_workchain, $source)
    and (not $no_source or source is null)
    and address_or_any(destination_workchain, destination, $destination_workchain, $destination)
    and (not $no_destination or destination is null)
    and (not $exclude_externals or created_lt is not null)
    and (not $only_externals or created_lt is null)
    and in_range(created_at, $start_utime, $end_utime)
    and in_range(created_lt, $start_lt, $end_lt)
    and (
        len($msg_hashes::blob[]) = 0
        or in_list(msg_hash, $msg_hashes::blob[])
        or in_list(hash_norm, $msg_hashes::blob[])
    )
group by msg_hash
order by
    case when $by_time and $descending then any_value(created_at) end desc nulls first,
    case when $by_time and not $descending then any_value(created_at) end nulls last,
    case when not $by_time and $descending then any_value(created_lt) end desc nulls first,
    case when not $by_time and not $descending then any_value(created_lt) end nulls last,
    case when $descending then msg_hash end desc,
    case when not $descending then msg_hash end
limit $limit
offset $offset
