-- Where the transactions of some hashes are.
--
-- $hashes blob[]  hashes
--
-- returns: hash, lt; in no order
select
    hash,
    lt
from transactions
where in_list(hash, $hashes)
