-- A page of one account's transactions: the most frequent question.
--
-- $workchain   integer          workchain of the account
-- $account     blob             account id
-- $start_utime bigint   = null  first unix second
-- $end_utime   bigint   = null  last unix second
-- $start_lt    bigint   = null  first logical time
-- $end_lt      bigint   = null  last logical time
-- $descending  boolean  = true  newest first
-- $limit       integer          most rows
-- $offset      integer  = 0     rows to pass over
--
-- returns: hash, lt; in order
select
    hash,
    lt
from transactions
where
    workchain = $workchain
    and account = $account
    and ($start_utime is null or now >= $start_utime)
    and ($end_utime is null or now <= $end_utime)
    and ($start_lt is null or lt >= $start_lt)
    and ($end_lt is null or lt <= $end_lt)
order by
    case when $descending then lt end desc,
    case when not $descending then lt end
limit $limit
offset $offset
