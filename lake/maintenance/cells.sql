create table old_cells as
select hash, refs, mc_seqno
from state_cell_copies
where mc_seqno < $border;

create table frontier as
select distinct hash
from old_cells
where hash in (
    select unnest([code_hash, data_hash, library_hash, extra_currencies_hash])
    from account_states
    union all
    select hash from libraries
    union all
    select unnest(refs) from state_cell_copies where mc_seqno >= $border
);

create or replace table frontier as
select hash from old_cells
where hash in (
    select unnest(refs) from old_cells where hash in (from frontier)
)
except
from reached;

select hash, mc_seqno, cell, refs
from state_cell_copies
where (hash, mc_seqno) in (
    select hash, min(mc_seqno) from old_cells where hash in (from reached) group by hash
)
