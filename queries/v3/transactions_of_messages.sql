-- The transactions that sent or consumed some messages.
--
-- $msg_hashes blob[]  hashes of the messages, as stored or in normal form
--
-- returns: tx_hash, each once; in no order
select distinct tx_hash
from messages
where
    msg_hash in (select unnest($msg_hashes::blob[]))
    or hash_norm in (select unnest($msg_hashes::blob[]))
