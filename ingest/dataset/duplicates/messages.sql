-- A statement over whole rows would take twice the time.
delete from messages
where rowid not in (select min(rowid) from messages group by tx_hash, direction, msg_hash)
