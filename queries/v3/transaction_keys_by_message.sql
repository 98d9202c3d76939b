-- A page of the transactions that consumed or produced messages, each transaction once.
--
-- $msg_hashes            blob[]  = []    hashes, as stored or normalized; empty: any
-- $body_hash             blob    = null  hash of the body
-- $opcode                integer = null  opcode, signed
-- $direction             text    = null  in (consumed) or out (produced); null: either
-- $source_workchain      integer = null  workchain of the source
-- $source                blob    = null  source of the message
-- $destination_workchain integer = null  workchain of the destination
-- $destination           blob    = null  destination of the message
-- $descending            boolean = true  newest first; equal logical times by account
-- $limit                 integer         maximum number of rows
-- $offset                integer = 0     rows to skip
--
-- returns: hash, lt of transactions; in order
select
    tx_hash as hash,
    tx_lt as lt
from messages
where
    equal_or_any(body_hash, $body_hash)
    and equal_or_any(opcode, $opcode)
    and equal_or_any(direction, $direction)
    and address_or_any(source_workchain, source, $source_workchain, $source)
    and address_or_any(destination_workchain, destination, $destination_workchain, $destination)
    and (
        len($msg_hashes::blob[]) = 0
        or in_list(msg_hash, $msg_hashes::blob[])
        or in_list(hash_norm, $msg_hashes::blob[])
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
