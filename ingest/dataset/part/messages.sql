create or replace table part.messages as
select *
from messages
where
    mc_seqno between $first and $last
    and mc_seqno not in (select mc_seqno from flaws)
