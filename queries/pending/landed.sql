-- Messages from outside that were consumed, by their hash or that of their normal form.
--
-- $hashes         blob[]  hashes, as sent or in normal form
-- $first_mc_seqno bigint  first masterchain block that is looked at
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
        in_list(msg_hash, $hashes)
        or in_list(hash_norm, $hashes)
    )
