-- Cells with these hashes and all cells below them, as far as the lake has them.
--
-- $hashes blob[]  hashes of the roots
--
-- returns: hash, cell (descriptors and data), refs; each cell once
with recursive tree as (
    select
        hash,
        cell,
        refs
    from state_cell_copies
    where hash in (select unnest($hashes::blob[]))
    union
    select
        child.hash,
        child.cell,
        child.refs
    from (select distinct unnest(refs) as hash from tree) as wanted
    inner join state_cell_copies as child using (hash)
)

select
    hash,
    cell,
    refs
from tree
