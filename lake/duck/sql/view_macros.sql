-- What views for people and everyday questions have in common.

-- One account; for a NULL address, the wallet that took most messages from outside. The relation is
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

-- The rows of a relation with sender and recipient as text, and their labels; it has their
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

-- Comments by the transaction that took the message with this opcode; the relations are `messages`
-- and `v_comments`.
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
