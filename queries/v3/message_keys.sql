-- A page of messages by any filters, the two ends of a message as one row.
--
-- $msg_hashes            blob[]            hashes, as stored or in normal form; empty: any
-- $body_hash             blob     = null   hash of the body
-- $opcode                integer  = null   opcode, signed
-- $direction             text     = null   look only at this end: in (consumed) or out (produced)
-- $source_workchain      integer  = null   workchain of the source
-- $source                blob     = null   source
-- $no_source             boolean  = false  only messages that have no source
-- $destination_workchain integer  = null   workchain of the destination
-- $destination           blob     = null   destination
-- $no_destination        boolean  = false  only messages that have no destination
-- $exclude_externals     boolean  = false  only messages with a time of creation
-- $only_externals        boolean  = false  only messages without one
-- $start_utime           bigint   = null   first unix second of creation
-- $end_utime             bigint   = null   last unix second of creation
-- $start_lt              bigint   = null   first logical time of creation
-- $end_lt                bigint   = null   last logical time of creation
-- $by_time               boolean  = false  order by time instead of logical time of creation
-- $descending            boolean  = true   newest first, and before them those without time
-- $limit                 integer           most rows
-- $offset                integer  = 0      rows to pass over
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
    ($body_hash is null or body_hash = $body_hash)
    and ($opcode is null or opcode = $opcode)
    and ($direction is null or direction = $direction)
    and ($source is null or (source_workchain = $source_workchain and source = $source))
    and (not $no_source or source is null)
    and (
        $destination is null
        or (destination_workchain = $destination_workchain and destination = $destination)
    )
    and (not $no_destination or destination is null)
    and (not $exclude_externals or created_lt is not null)
    and (not $only_externals or created_lt is null)
    and ($start_utime is null or created_at >= $start_utime)
    and ($end_utime is null or created_at <= $end_utime)
    and ($start_lt is null or created_lt >= $start_lt)
    and ($end_lt is null or created_lt <= $end_lt)
    and (
        len($msg_hashes::blob[]) = 0
        or msg_hash in (select unnest($msg_hashes::blob[]))
        or hash_norm in (select unnest($msg_hashes::blob[]))
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
