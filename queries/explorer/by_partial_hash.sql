-- Transactions, messages, blocks and accounts whose hash or account id begins with some digits.
--
-- $low    blob     least hash that begins with the digits
-- $high   blob     greatest hash that begins with them
-- $suffix text     lowercase hex digits that the hash ends in; empty: any
-- $first  bigint   lowest masterchain block to search
-- $limit  integer  maximum number of rows
--
-- returns: kind (transaction, message, block or account), hash, workchain, shard, seqno
-- (of a block, and the workchain of an account); by kind and hash
with found as (
    select
        'transaction' as kind,
        hash,
        null as workchain,
        null as shard,
        null as seqno
    from transactions
    where hash between $low and $high and mc_seqno >= $first
    union
    select
        'message' as kind,
        msg_hash as hash,
        null as workchain,
        null as shard,
        null as seqno
    from messages
    where msg_hash between $low and $high and mc_seqno >= $first
    union
    select
        'block' as kind,
        root_hash as hash,
        workchain,
        shard,
        seqno
    from blocks
    where root_hash between $low and $high and mc_seqno >= $first
    union
    select
        'block' as kind,
        file_hash as hash,
        workchain,
        shard,
        seqno
    from blocks
    where file_hash between $low and $high and mc_seqno >= $first
    union
    select
        'account' as kind,
        account as hash,
        workchain,
        null as shard,
        null as seqno
    from account_states
    where account between $low and $high and mc_seqno >= $first
)

select
    kind,
    hash,
    workchain,
    shard,
    seqno
from found
where ends_with(lower(hex(hash)), $suffix)
order by
    kind,
    hash,
    workchain
limit $limit
