-- A statement over whole rows would take twice the time.
delete from account_states
where rowid not in (
    select min(rowid) from account_states group by workchain, account, mc_seqno, block_seqno
)
