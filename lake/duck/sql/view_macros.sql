-- Macros shared by the views for people and the everyday questions.

-- Every row of `messages`, of a table with `aborted`, or of a relation with tx_workchain. The join,
-- which holds for each row, lets DuckDB expect few of them: it then looks up those that a filter
-- leaves in the table joined next, of which it reads what may have them, rather than read all of it
-- before.
create or replace macro each_message(relation) as table
    select held.*
    from query_table(relation) as held
    semi join (select unnest(['in', 'out']) as direction) as either using (direction);
create or replace macro each_move(relation) as table
    select held.*
    from query_table(relation) as held
    semi join (select unnest([true, false]) as ended) as either
        on coalesce(held.aborted, false) = ended;
create or replace macro each_row(relation) as table
    select held.*
    from query_table(relation) as held
    semi join (select unnest([true, false]) as is_master) as either
        on (held.tx_workchain = -1) = is_master;

-- One end of every message: at the transaction that consumed it, else at its sender, which sends one at
-- a logical time. The relation is `messages`. One scan of all ends. A left join, not an anti join: the
-- few messages that a filter leaves prune the other side.
create or replace macro one_end(relation) as table
    select ends.*
    from each_message(relation) as ends
    left join query_table(relation) as consumed
        on ends.created_lt = consumed.created_lt
        and ends.source = consumed.source
        and ends.source_workchain = consumed.source_workchain
        and ends.direction > consumed.direction
        and consumed.direction = 'in'
    where ends.direction = 'in' or ends.kind = 'ext_out' or consumed.direction is null;

-- The same, of ends that filters on the sender or the recipient leave: both ends of a message have these, so
-- that the table is read once. Other filters do not pass the window: all ends would be compared.
create or replace macro one_end_of(relation) as table
    select *
    from query_table(relation)
    qualify
        source is null
        or row_number() over (
            partition by created_lt, source, source_workchain, destination
            order by direction
        ) = 1;

-- The same, with the trace, for a filter on it: the ends of a message are in one trace.
create or replace macro one_end_of_trace(relation, traces) as table
    select
        ends.*,
        traced.trace_id
    from query_table(relation) as ends
    left join query_table(traces) as traced
        on ends.tx_lt = traced.lt
        and ends.tx_account = traced.account
        and ends.tx_workchain = traced.workchain
        and ends.mc_seqno = traced.mc_seqno
        and ends.day = traced.day
    qualify
        source is null
        or row_number() over (
            partition by trace_id, created_lt, source, source_workchain, destination
            order by direction
        ) = 1;

-- The traces of transactions; the relation is `transaction_traces`. With a filter on one trace, few_traces:
-- as with each_message, DuckDB then looks up its transactions in the table joined with it.
create or replace macro every_trace(relation) as table
    select *
    from query_table(relation);
create or replace macro few_traces(relation) as table
    select held.*
    from query_table(relation) as held
    semi join (select unnest([true, false]) as is_master) as either
        on (held.workchain = -1) = is_master;

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

-- The label of each account; the relation is `labels`. Grouped: DuckDB leaves out a join with it, if no
-- label is asked for.
create or replace macro label_of(relation) as table
    select
        workchain,
        account,
        any_value(label) as label
    from query_table(relation)
    group by workchain, account;

-- The rows of a relation with sender and recipient as text; it has their workchains and account ids as
-- source_workchain, source, destination_workchain and destination.
create or replace macro with_addresses(relation) as table
    select
        moved.* exclude (source_workchain, source, destination_workchain, destination),
        ton_address(source_workchain, moved.source) as sender,
        source_workchain as sender_workchain,
        moved.source as sender_id,
        ton_address(destination_workchain, destination) as recipient,
        destination_workchain as recipient_workchain,
        destination as recipient_id
    from query_table(relation) as moved;

-- The same with their labels.
create or replace macro with_ends(relation) as table
    select
        ends.*,
        senders.label as sender_label,
        recipients.label as recipient_label
    from with_addresses(relation) as ends
    left join label_of('labels') as senders
        on sender_id = senders.account and sender_workchain = senders.workchain
    left join label_of('labels') as recipients
        on recipient_id = recipients.account and recipient_workchain = recipients.workchain;

-- The text comment of a decoded body, or of the forward payload in it; NULL if there is none, or an
-- encrypted one.
create or replace macro body_comment(opcode_name, decoded) as
    case
        when opcode_name = 'text_comment' then decoded ->> '$.comment'
        when
            list_contains(
                [
                    'jetton_transfer',
                    'jetton_internal_transfer',
                    'jetton_notify',
                    'nft_transfer',
                    'nft_ownership_assigned'
                ],
                opcode_name
            )
            and (decoded ->> '$.forward_payload.value."@type"') = 'text_comment'
            then decoded ->> '$.forward_payload.value.text'
    end;

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

-- Balances in TON; the relation is rows of `account_states`.
create or replace macro balances_of_coins(states) as table
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
        on states.account = labels.account and states.workchain = labels.workchain;

-- Balances in TON and in jettons; the relations are rows of `account_states` and of `jetton_wallets`,
-- and `v_jettons`.
create or replace macro balances_of(states, wallets, jettons) as table
    select *
    from balances_of_coins(states)
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
        ton_amount(balance, decimals) as balance,
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

-- The newest name of every collection; the relation is `nft_collections`, read once.
create or replace macro collection_names(relation) as table
    select
        workchain,
        account,
        arg_max_null(content, mc_seqno) ->> '$.name' as name
    from query_table(relation)
    group by workchain, account;

-- The columns of `dex_prices` that others read, without rows.
create or replace macro no_prices() as table
    select
        null::timestamp as time,
        null::varchar as address,
        null::integer as workchain,
        null::blob as account,
        null::double as close,
        null::double as volume_ton
    where false;

-- Movements of jettons with their symbol, and their amount in whole jettons and in TON; the relations
-- have the columns of `jetton_transfers`, and are `v_jettons` and `dex_prices`.
create or replace macro valued_jettons(relation, jettons, price_list) as table
    select
        named.*,
        case
            when named.time < prices.time + interval 1 day
                then ton_bounded(scaled::double * prices.close)
        end as value_ton
    from (
        select
            moved.*,
            tx_time as time,
            symbol,
            ton_amount(amount, decimals) as scaled
        from query_table(relation) as moved
        left join query_table(jettons) as jettons
            on moved.jetton = jettons.account and moved.jetton_workchain = jettons.workchain
    ) as named
    asof left join query_table(price_list) as prices
        on named.jetton = prices.account
        and named.jetton_workchain = prices.workchain
        and named.time >= prices.time;

-- Coins and extra currencies that delivered messages carried, and tokens that transfers moved, in one
-- shape; the first two have the body. The relations are `messages`, `jetton_transfers`, `nft_transfers`,
-- `v_jettons`, `dex_prices` and `nft_collections`.
create or replace macro moved_coins(relation) as table
    select
        'ton' as kind,
        tx_time as time,
        source_workchain,
        source,
        destination_workchain,
        destination,
        null::varchar as asset,
        null::integer as asset_workchain,
        null::blob as asset_id,
        'TON' as symbol,
        ton_coins(value)::decimal(38, 9) as amount,
        value::decimal(38, 0) as amount_units,
        ton_coins(value)::decimal(38, 9) as value_ton,
        tx_workchain,
        tx_account,
        tx_lt,
        tx_hash,
        body_hash,
        mc_seqno,
        day
    from query_table(relation)
    where direction = 'in' and kind = 'int' and value > 0;
create or replace macro moved_currencies(relation) as table
    select
        'extra_currency' as kind,
        tx_time as time,
        source_workchain,
        source,
        destination_workchain,
        destination,
        unnest(json_keys(value_extra_currencies)) as asset,
        try_cast(value_extra_currencies ->> asset as decimal(38, 0)) as amount_units,
        tx_workchain,
        tx_account,
        tx_lt,
        tx_hash,
        body_hash,
        mc_seqno,
        day
    from query_table(relation)
    where direction = 'in' and kind = 'int' and value_extra_currencies is not null;
create or replace macro moved_tokens(transfers, nfts, jettons, price_list, collections) as table
    select
        'jetton' as kind,
        time,
        source_workchain,
        source,
        destination_workchain,
        destination,
        ton_address(jetton_workchain, jetton) as asset,
        jetton_workchain as asset_workchain,
        jetton as asset_id,
        symbol,
        scaled as amount,
        amount as amount_units,
        value_ton,
        workchain as tx_workchain,
        account as tx_account,
        lt as tx_lt,
        tx_hash,
        mc_seqno,
        day
    from valued_jettons(transfers, jettons, price_list)
    where not aborted
    union all by name
    select
        'nft' as kind,
        tx_time as time,
        old_owner_workchain as source_workchain,
        old_owner as source,
        new_owner_workchain as destination_workchain,
        new_owner as destination,
        ton_address(moved.workchain, moved.account) as asset,
        moved.workchain as asset_workchain,
        moved.account as asset_id,
        held.name as symbol,
        1 as amount,
        1 as amount_units,
        moved.workchain as tx_workchain,
        moved.account as tx_account,
        moved.lt as tx_lt,
        tx_hash,
        moved.mc_seqno,
        moved.day
    from each_move(nfts) as moved
    left join collection_names(collections) as held
        on moved.collection = held.account and moved.collection_workchain = held.workchain
    where not aborted;
create or replace macro moved_assets(
    coins, transfers, nfts, jettons, price_list, collections
) as table
    select * exclude (body_hash)
    from moved_coins(coins)
    union all by name
    select * exclude (body_hash)
    from moved_currencies(coins)
    union all by name
    select *
    from moved_tokens(transfers, nfts, jettons, price_list, collections);

-- The rows of `moved_assets` that come from or go to each account of a relation. Not one filter with
-- `or`, which skips no part of a file.
create or replace macro moves_of(relation, accounts) as table
    select
        moved.*,
        true as outgoing,
        coalesce(destination = account and destination_workchain = workchain, false) as incoming
    from query_table(relation) as moved
    join query_table(accounts) as asked on source = account and source_workchain = workchain
    union all
    select
        moved.*,
        false as outgoing,
        true as incoming
    from query_table(relation) as moved
    join query_table(accounts) as asked
        on destination = account
        and destination_workchain = workchain
        and (source, source_workchain) is distinct from (account, workchain);

-- TON in US dollars by hour; the relation is `dex_prices`.
create or replace macro coin_prices(price_list) as table
    select
        prices.time,
        median(1 / close) as usd,
        sum(volume_ton) as volume_ton,
        count(*) as stablecoins
    from query_table(price_list) as prices
    semi join stablecoins using (address)
    group by prices.time;

-- Rows with the body that their transaction received; the relations have tx_workchain, tx_account and
-- tx_lt, and are `messages`.
create or replace macro with_body(relation, messages) as table
    select
        held.*,
        received.body_hash
    from each_row(relation) as held
    left join query_table(messages) as received
        on held.tx_account = received.tx_account
        and held.tx_lt = received.tx_lt
        and held.tx_workchain = received.tx_workchain
        and held.mc_seqno = received.mc_seqno
        and held.day = received.day
        and received.direction = 'in';

-- Rows with the trace of their transaction, and the comment in their body; the relations have
-- tx_workchain, tx_account, tx_lt and body_hash, and are `transaction_traces` and `message_bodies`.
create or replace macro with_trace_and_comment(relation, traces, bodies) as table
    select
        held.*,
        trace_id,
        decoded_opcode,
        decoded,
        body_comment(decoded_opcode, decoded) as comment
    from each_row(relation) as held
    left join query_table(traces) as traced
        on held.tx_account = traced.account
        and held.tx_lt = traced.lt
        and held.tx_workchain = traced.workchain
        and held.mc_seqno = traced.mc_seqno
        and held.day = traced.day
    left join query_table(bodies) as bodies
        on held.body_hash = bodies.body_hash
        and held.mc_seqno = bodies.mc_seqno
        and held.day = bodies.day
        and not external_in;

-- A price in nanoton; NULL above 10^20, more than there are: a contract can name any, and sums of such
-- prices would overflow.
create or replace macro nft_price(nano) as
    try_cast(nano as decimal(20, 0))::decimal(38, 0);

-- The part of a price that a contract pays out, by the names of two fields of its terms.
create or replace macro nft_share(price, terms, factor, base) as
    (
        price::hugeint * try_cast(terms ->> factor as uinteger)
        // nullif(try_cast(terms ->> base as uinteger), 0)
    )::decimal(38, 0);

-- The standard address at a path of a decoded body; NULL if there is none.
create or replace macro body_address(decoded, path) as
    (json_extract(decoded, path) ->> '$.workchain_id')
    || ':'
    || (json_extract(decoded, path) ->> '$.address');
