-- The hashes that are public libraries as of a masterchain block.
--
-- $hashes   blob[]  hashes of root cells
-- $mc_seqno bigint  masterchain block
--
-- returns: hashes
select hash
from libraries
where
    mc_seqno <= $mc_seqno
    and in_list(hash, $hashes::blob[])
group by hash
having arg_max(present, mc_seqno)
