-- The transactions that sent or consumed some messages.
--
-- $msg_hashes blob[]  hashes of the messages, as stored or normalized
--
-- returns: tx_hash, each once; in no order
select distinct tx_hash
from messages
where
    in_list(msg_hash, $msg_hashes::blob[])
    or in_list(hash_norm, $msg_hashes::blob[])
