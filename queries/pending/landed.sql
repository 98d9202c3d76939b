-- Consumed external messages by hash, as sent or normalized.
--
-- $hashes         blob[]  hashes, as sent or normalized
-- $first_mc_seqno bigint  first masterchain block to search
--
-- returns: msg_hash, hash_norm, mc_seqno; in no order
select
    msg_hash,
    hash_norm,
    mc_seqno
from messages
where
    mc_seqno >= $first_mc_seqno
    and direction = 'in'
    and kind = 'ext_in'
    and (
        in_list(msg_hash, $hashes::blob[])
        or in_list(hash_norm, $hashes::blob[])
    )
