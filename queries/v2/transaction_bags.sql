-- Transactions whose cells are kept whole.
--
-- $hashes   blob[]  hashes
-- $first_lt bigint  lowest logical time among them
-- $last_lt  bigint  highest logical time among them
--
-- returns: hash, and the cells as bag of cells; NULL where nobody knows them
select
    hash,
    boc
from transactions
where
    lt between $first_lt and $last_lt
    and in_list(hash, $hashes)
