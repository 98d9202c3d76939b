-- Macros shared by the views for people and the everyday questions.

-- One account; for a NULL address, the wallet that received most external messages. The relation is
-- `messages`.
create or replace macro account_or_busiest(address, relation) as table
    select
        ton_workchain(address) as workchain,
        ton_account(address) as account
    where address is not null
    union all
    from (
        select
            destination_workchain,
            destination
        from query_table(relation)
        where address is null and direction = 'in' and kind = 'ext_in'
        group by destination_workchain, destination
        order by
            count(*) desc,
            destination
        limit 1
    );

-- The rows of a relation with sender and recipient as text, and with their labels; it has their
-- workchains and account ids as source_workchain, source, destination_workchain and destination.
create or replace macro with_ends(relation) as table
    select
        moved.* exclude (source_workchain, source, destination_workchain, destination),
        ton_address(source_workchain, moved.source) as sender,
        source_workchain as sender_workchain,
        moved.source as sender_id,
        senders.label as sender_label,
        ton_address(destination_workchain, destination) as recipient,
        destination_workchain as recipient_workchain,
        destination as recipient_id,
        recipients.label as recipient_label
    from query_table(relation) as moved
    left join labels as senders
        on moved.source = senders.account and source_workchain = senders.workchain
    left join labels as recipients
        on destination = recipients.account and destination_workchain = recipients.workchain;

-- Comments by the transaction that received a message with this opcode; the relations are
-- `messages` and `v_comments`.
create or replace macro comments_of(opcode, relation, comments) as table
    select
        tx_hash,
        commented.comment
    from query_table(relation) as received
    join query_table(comments) as commented on received.body_hash = commented.body_hash
    where direction = 'in' and kind = 'int' and opcode_name = opcode;

-- Every code with its interfaces and its label. The relation is `interfaces`.
create or replace macro known_codes(relation) as table
    select
        code_hash,
        any_value(names) as interfaces,
        arg_min(label, code) as code_label,
        arg_min(category, code) as code_category
    from query_table(relation)
    left join code_labels on list_contains(list_append(names, ton_base64(code_hash)), code)
    group by code_hash;

-- Balances in TON and in jettons; the relations are rows of `account_states` and of `jetton_wallets`,
-- and `v_jettons`.
create or replace macro balances_of(states, wallets, jettons) as table
    select
        ton_time(utime) as time,
        ton_address(states.workchain, states.account) as address,
        states.workchain,
        states.account,
        label,
        null::varchar as asset,
        null::integer as asset_workchain,
        null::blob as asset_id,
        'TON' as symbol,
        ton_coins(balance)::decimal(38, 9) as balance,
        balance::decimal(38, 0) as balance_units,
        null::varchar as jetton_wallet,
        null::integer as jetton_wallet_workchain,
        null::blob as jetton_wallet_id,
        last_trans_lt as lt,
        mc_seqno,
        block_seqno,
        day
    from query_table(states) as states
    left join labels
        on states.account = labels.account and states.workchain = labels.workchain
    union all
    select
        ton_time(utime) as time,
        ton_address(owner_workchain, owner) as address,
        owner_workchain as workchain,
        owner as account,
        label,
        ton_address(jetton_workchain, jetton) as asset,
        jetton_workchain as asset_workchain,
        jetton as asset_id,
        symbol,
        ton_scaled(balance, decimals) as balance,
        balance as balance_units,
        ton_address(wallets.workchain, wallets.account) as jetton_wallet,
        wallets.workchain as jetton_wallet_workchain,
        wallets.account as jetton_wallet_id,
        lt,
        wallets.mc_seqno,
        null as block_seqno,
        day
    from query_table(wallets) as wallets
    left join query_table(jettons) as jettons
        on wallets.jetton = jettons.account and wallets.jetton_workchain = jettons.workchain
    left join labels
        on wallets.owner = labels.account and owner_workchain = labels.workchain;
