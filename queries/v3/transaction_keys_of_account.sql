-- A page of one account's transactions, the most frequent query.
--
-- $workchain   integer          workchain of the account
-- $account     blob             account id
-- $start_utime bigint   = null  first unix second
-- $end_utime   bigint   = null  last unix second
-- $start_lt    bigint   = null  first logical time
-- $end_lt      bigint   = null  last logical time
-- $descending  boolean  = true  newest first
-- $limit       integer          maximum number of rows
-- $offset      integer  = 0     rows to skip
--
-- returns: hash, lt; in order
select
    hash,
    lt
from transactions
where
    workchain = $workchain
    and account = $account
    and in_range(now, $start_utime, $end_utime)
    and in_range(lt, $start_lt, $end_lt)
order by
    case when $descending then lt end desc,
    case when not $descending then lt end
limit $limit
offset $offset
