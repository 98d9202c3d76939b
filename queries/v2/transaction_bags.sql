-- The bags of cells of some transactions.
--
-- $hashes   blob[]  hashes
-- $first_lt bigint  lowest logical time among them
-- $last_lt  bigint  highest logical time among them
--
-- returns: hash, boc, in no order; boc is NULL if an earlier version did not store it
select
    hash,
    boc
from transactions
where
    lt between $first_lt and $last_lt
    and in_list(hash, $hashes::blob[])
