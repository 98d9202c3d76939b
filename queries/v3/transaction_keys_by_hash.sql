-- The logical times of transactions by hash.
--
-- $hashes blob[]  hashes
--
-- returns: hash, lt; in no order
select
    hash,
    lt
from transactions
where in_list(hash, $hashes::blob[])
