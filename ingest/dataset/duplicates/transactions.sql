-- A statement over whole rows would take twice the time.
delete from transactions
where rowid not in (select min(rowid) from transactions group by hash)
