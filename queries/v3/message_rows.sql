-- Messages of some transactions, all or only those with given hashes.
--
-- $tx_hashes  blob[]       hashes of the transactions
-- $msg_hashes blob[] = []  hashes of the messages; empty: any
-- $first_lt   bigint       lowest logical time among them
-- $last_lt    bigint       highest logical time among them
--
-- returns: the columns of messages that describe the message, and its transaction; in no order
select
    tx_lt,
    tx_hash,
    direction,
    msg_index,
    msg_hash,
    hash_norm,
    kind,
    source_workchain,
    source,
    source_kind,
    destination_workchain,
    destination,
    destination_kind,
    value,
    value_extra_currencies,
    fwd_fee,
    ihr_fee,
    extra_flags,
    created_lt,
    created_at,
    ihr_disabled,
    bounce,
    bounced,
    import_fee,
    opcode,
    body_hash,
    body,
    init_state_hash,
    init_state
from messages
where
    tx_lt between $first_lt and $last_lt
    and in_list(tx_hash, $tx_hashes::blob[])
    and in_list_or_any(msg_hash, $msg_hashes::blob[])
