-- Whether the lake has the accounts of the zero state.
--
-- returns: is_there; one row
select exists(
    select 1
    from account_states
    where mc_seqno = 0
) as is_there
