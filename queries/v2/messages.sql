-- Messages of some transactions, each transaction's own in their order.
--
-- $tx_hashes blob[]  hashes of the transactions
-- $first_lt  bigint  lowest logical time of them
-- $last_lt   bigint  highest logical time of them
--
-- returns: messages
select
    tx_hash,
    direction,
    msg_index,
    msg_hash,
    source_workchain,
    source,
    destination_workchain,
    destination,
    value,
    value_extra_currencies,
    fwd_fee,
    created_lt,
    body_hash,
    body,
    init_state
from messages
where
    tx_lt between $first_lt and $last_lt
    and tx_hash in (select unnest($tx_hashes::blob[]))
order by
    tx_hash,
    direction,
    msg_index
