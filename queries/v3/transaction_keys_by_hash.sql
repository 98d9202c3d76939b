-- Where transactions of some hashes are.
--
-- $hashes     blob[]            hashes
-- $descending boolean  = true   highest hash first
-- $limit      integer           most rows
-- $offset     integer  = 0      rows to pass over
--
-- returns: hash, lt; in order of hash
select
    hash,
    lt
from transactions
where hash in (select unnest($hashes::blob[]))
order by
    case when $descending then hash end desc,
    case when not $descending then hash end
limit $limit
offset $offset
