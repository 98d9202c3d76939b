create or replace table part.transactions as
select *
from transactions
where mc_seqno between $first and $last
