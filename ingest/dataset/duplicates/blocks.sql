-- A statement over whole rows would take twice the time.
delete from blocks
where rowid not in (select min(rowid) from blocks group by workchain, shard, seqno)
