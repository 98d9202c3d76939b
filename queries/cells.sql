-- Cells by hash; their references are queried separately.
--
-- $hashes blob[]  hashes of the cells
--
-- returns: hash, cell (descriptors and data), refs; once for each file that has the cell
select
    hash,
    cell,
    refs
from state_cell_copies
where in_list(hash, $hashes::blob[])
