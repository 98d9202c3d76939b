-- The peer's tables of the rows that the lake holds, without indexes: columns as in its migrations.
create domain tonhash as char(44);
create domain tonaddr as varchar;
create type account_status_type as enum ('uninit', 'frozen', 'active', 'nonexist');
create type descr_type as enum (
    'ord', 'storage', 'tick_tock', 'split_prepare', 'split_install', 'merge_prepare',
    'merge_install'
);
create type status_change_type as enum ('unchanged', 'frozen', 'deleted');
create type skipped_reason_type as enum ('no_state', 'bad_state', 'no_gas', 'suspended');
create type bounce_type as enum ('negfunds', 'nofunds', 'ok');
create type msg_direction as enum ('out', 'in');
create type trace_state as enum ('complete', 'pending', 'broken');
create type trace_classification_state as enum ('unclassified', 'failed', 'ok', 'broken');
create type blockid as (workchain integer, shard bigint, seqno integer);

create table blocks (
    workchain integer not null,
    shard bigint not null,
    seqno integer not null,
    root_hash tonhash,
    file_hash tonhash,
    mc_block_workchain integer,
    mc_block_shard bigint,
    mc_block_seqno integer,
    global_id integer,
    version integer,
    after_merge boolean,
    before_split boolean,
    after_split boolean,
    want_merge boolean,
    want_split boolean,
    key_block boolean,
    vert_seqno_incr boolean,
    flags integer,
    gen_utime bigint,
    start_lt bigint,
    end_lt bigint,
    validator_list_hash_short integer,
    gen_catchain_seqno integer,
    min_ref_mc_seqno integer,
    prev_key_block_seqno integer,
    vert_seqno integer,
    master_ref_seqno integer,
    rand_seed tonhash,
    created_by tonhash,
    tx_count integer,
    prev_blocks blockid []
);

create table transactions (
    account tonaddr not null,
    hash tonhash not null,
    lt bigint not null,
    block_workchain integer,
    block_shard bigint,
    block_seqno integer,
    mc_block_seqno integer,
    trace_id tonhash,
    prev_trans_hash tonhash,
    prev_trans_lt bigint,
    now integer,
    orig_status account_status_type,
    end_status account_status_type,
    total_fees bigint,
    total_fees_extra_currencies jsonb,
    account_state_hash_before tonhash,
    account_state_hash_after tonhash,
    descr descr_type,
    aborted boolean,
    destroyed boolean,
    credit_first boolean,
    is_tock boolean,
    installed boolean,
    storage_fees_collected bigint,
    storage_fees_due bigint,
    storage_status_change status_change_type,
    credit_due_fees_collected bigint,
    credit bigint,
    credit_extra_currencies jsonb,
    compute_skipped boolean,
    skipped_reason skipped_reason_type,
    compute_success boolean,
    compute_msg_state_used boolean,
    compute_account_activated boolean,
    compute_gas_fees bigint,
    compute_gas_used bigint,
    compute_gas_limit bigint,
    compute_gas_credit bigint,
    compute_mode smallint,
    compute_exit_code integer,
    compute_exit_arg integer,
    compute_vm_steps bigint,
    compute_vm_init_state_hash tonhash,
    compute_vm_final_state_hash tonhash,
    action_success boolean,
    action_valid boolean,
    action_no_funds boolean,
    action_status_change status_change_type,
    action_total_fwd_fees bigint,
    action_total_action_fees bigint,
    action_result_code integer,
    action_result_arg integer,
    action_tot_actions integer,
    action_spec_actions integer,
    action_skipped_actions integer,
    action_msgs_created integer,
    action_action_list_hash tonhash,
    action_tot_msg_size_cells bigint,
    action_tot_msg_size_bits bigint,
    bounce bounce_type,
    bounce_msg_size_cells bigint,
    bounce_msg_size_bits bigint,
    bounce_req_fwd_fees bigint,
    bounce_msg_fees bigint,
    bounce_fwd_fees bigint,
    split_info_cur_shard_pfx_len integer,
    split_info_acc_split_depth integer,
    split_info_this_addr tonaddr,
    split_info_sibling_addr tonaddr
);

create table messages (
    tx_hash tonhash not null,
    tx_lt bigint not null,
    mc_seqno integer,
    msg_hash tonhash not null,
    msg_hash_norm tonhash,
    direction msg_direction not null,
    trace_id tonhash,
    source tonaddr,
    destination tonaddr,
    value bigint,
    value_extra_currencies jsonb,
    fwd_fee bigint,
    ihr_fee bigint,
    extra_flags numeric,
    created_lt bigint,
    created_at bigint,
    opcode integer,
    ihr_disabled boolean,
    bounce boolean,
    bounced boolean,
    import_fee bigint,
    body_hash tonhash,
    init_state_hash tonhash
);

create table message_contents (
    hash tonhash not null,
    body text
);

create table latest_account_states (
    id bigserial not null,
    account tonaddr not null,
    account_friendly tonaddr,
    hash tonhash not null,
    balance bigint,
    balance_extra_currencies jsonb,
    account_status account_status_type,
    timestamp integer,
    last_trans_hash tonhash,
    last_trans_lt bigint,
    frozen_hash tonhash,
    data_hash tonhash,
    code_hash tonhash,
    data_boc text,
    code_boc text
);

create table account_states (
    hash tonhash not null,
    account tonaddr,
    balance bigint,
    balance_extra_currencies jsonb,
    account_status account_status_type,
    frozen_hash tonhash,
    data_hash tonhash,
    code_hash tonhash
);

create table traces (
    trace_id tonhash not null,
    external_hash tonhash,
    external_hash_norm tonhash,
    mc_seqno_start integer,
    mc_seqno_end integer,
    start_lt bigint,
    start_utime integer,
    end_lt bigint,
    end_utime integer,
    state trace_state,
    pending_edges_ bigint,
    edges_ bigint,
    nodes_ bigint,
    classification_state trace_classification_state default 'unclassified'
);
