-- Cells with these hashes, as far as the lake has them; those below are asked for in turn.
--
-- $hashes blob[]  hashes of the cells
--
-- returns: hash, cell (descriptors and data), refs; a cell once for every file that has it
select
    hash,
    cell,
    refs
from state_cell_copies
where in_list(hash, $hashes)
