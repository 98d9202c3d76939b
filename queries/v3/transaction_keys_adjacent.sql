-- The transactions before and after one in its trace.
--
-- $hash      blob            hash of the transaction
-- $direction text    = null  in: the preceding one, out: the following ones; null: both
--
-- returns: hash, lt; ascending logical time
with own as (
    select parent_hash
    from transaction_traces
    where hash = $hash
)

select
    hash,
    lt
from transaction_traces
where
    (coalesce($direction, 'out') = 'out' and parent_hash = $hash)
    or (coalesce($direction, 'in') = 'in' and hash = (select own.parent_hash from own))
order by
    lt,
    workchain,
    account
