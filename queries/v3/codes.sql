-- The interfaces of some codes.
--
-- $hashes blob[]  hashes of code cells
--
-- returns: code_hash, methods, names; one row for each code that is known, in no order
select
    code_hash,
    any_value(methods) as methods,
    any_value(names) as names
from interfaces
where in_list(code_hash, $hashes::blob[])
group by code_hash
