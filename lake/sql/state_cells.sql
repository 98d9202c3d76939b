-- Files of different ranges may hold the same cell: all copies are equal but for mc_seqno.
create view state_cells as
select
    hash,
    min(mc_seqno) as mc_seqno,
    any_value(cell) as cell,
    any_value(refs) as refs,
    min(day) as day
from state_cell_copies
group by hash;
