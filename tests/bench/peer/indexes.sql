-- The peer's keys and indexes of the same tables, made after the rows are in.
alter table blocks add primary key (workchain, shard, seqno);
create index on blocks (gen_utime);
create index on blocks (mc_block_seqno);
create index on blocks (seqno) where workchain = -1;
create index on blocks (start_lt);
create index on blocks (root_hash);
create index on blocks (file_hash);

alter table transactions add primary key (hash, lt);
create index on transactions (block_workchain, block_shard, block_seqno);
create index on transactions (lt);
create index on transactions (now, lt);
create index on transactions (account, lt);
create index on transactions (account, now, lt);
create index on transactions (hash);
create index on transactions (trace_id, lt);
create index on transactions (mc_block_seqno, lt);
create index on transactions (account, trace_id);

alter table messages add primary key (tx_hash, tx_lt, msg_hash, direction);
create index on messages (msg_hash);
create index on messages (source, created_lt);
create index on messages (destination, created_lt);
create index on messages (body_hash);
create index on messages (trace_id, tx_lt);
create index on messages (opcode, created_lt);
create index on messages (created_lt, msg_hash);
create index on messages (created_at, msg_hash);
create index on messages (msg_hash_norm) where msg_hash_norm is not null;

alter table message_contents add primary key (hash);

alter table latest_account_states add primary key (account);
create index on latest_account_states (account)
    include (account_friendly, code_hash, account_status);
create index on latest_account_states (balance desc) include (account);
create index on latest_account_states (id);

alter table account_states add primary key (hash);

alter table traces add primary key (trace_id);
create index on traces (mc_seqno_end);
create index on traces (state, start_lt) include (trace_id, nodes_)
where classification_state = 'unclassified';
create index on traces (state);
create index on traces (end_lt desc, trace_id desc);
create index on traces (end_utime desc, trace_id desc);
create index on traces (classification_state);

vacuum analyze;
