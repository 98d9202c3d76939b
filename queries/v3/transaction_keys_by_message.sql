-- A page of the transactions that consumed or produced messages, each transaction once.
--
-- $msg_hashes            blob[]            hashes of messages, as stored or in normal form
-- $body_hash             blob     = null   hash of the body
-- $opcode                integer  = null   opcode, signed
-- $direction             text     = null   in: consumed, out: produced; null: either
-- $source_workchain      integer  = null   workchain of the source
-- $source                blob     = null   source of the message
-- $destination_workchain integer  = null   workchain of the destination
-- $destination           blob     = null   destination of the message
-- $descending            boolean  = true   newest first; accounts of one logical time ascend
-- $limit                 integer           most rows
-- $offset                integer  = 0      rows to pass over
--
-- returns: hash, lt of transactions; in order
select
    tx_hash as hash,
    tx_lt as lt
from messages
where
    ($body_hash is null or body_hash = $body_hash)
    and ($opcode is null or opcode = $opcode)
    and ($direction is null or direction = $direction)
    and ($source is null or (source_workchain = $source_workchain and source = $source))
    and (
        $destination is null
        or (destination_workchain = $destination_workchain and destination = $destination)
    )
    and (
        len($msg_hashes::blob[]) = 0
        or msg_hash in (select unnest($msg_hashes::blob[]))
        or hash_norm in (select unnest($msg_hashes::blob[]))
    )
group by
    tx_workchain,
    tx_account,
    tx_lt,
    tx_hash
order by
    case when $descending then tx_lt end desc,
    case when not $descending then tx_lt end,
    tx_workchain,
    tx_account
limit $limit
offset $offset
