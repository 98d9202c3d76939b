create or replace table part.messages as
select *
from messages
where mc_seqno between $first and $last
