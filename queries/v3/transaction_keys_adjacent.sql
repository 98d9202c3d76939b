-- The transactions next to one: that made its in message, and those that its out messages made.
--
-- $hash      blob            hash of the transaction
-- $direction text    = null  in: what came before, out: what came after; null: both
--
-- returns: hash, lt; ascending logical time
with own as (
    select
        msg_hash,
        direction
    from messages
    where
        tx_hash = $hash
        and ($direction is null or direction = $direction)
)

select
    other.tx_hash as hash,
    other.tx_lt as lt
from messages as other
inner join own on other.msg_hash = own.msg_hash and other.direction <> own.direction
group by
    other.tx_workchain,
    other.tx_account,
    other.tx_lt,
    other.tx_hash
order by
    other.tx_lt,
    other.tx_workchain,
    other.tx_account
