-- Cells under touched accounts and public libraries, each hash once. Files of different
-- commits may have the same cell; mc_seqno is the lowest.
create or replace view state_cells as
select
    hash,
    min(mc_seqno) as mc_seqno,
    any_value(cell) as cell,
    any_value(refs) as refs,
    min(day) as day
from state_cell_copies
group by hash;
