-- Filters and relations of the named queries. They work in DuckDB 1.5 and 2.x.
-- Parameters of table macros that name a relation take its name as text.

-- True if a value is in a list.
create or replace macro in_list(value, choices) as
    value in (select unnest(choices));

-- True if an address is in two parallel lists, of its parts.
create or replace macro in_pairs(workchain, account, workchains, accounts) as
    (workchain, account) in (select unnest(workchains::integer[]), unnest(accounts::blob[]));

-- The same, but an empty list allows any value.
create or replace macro in_list_or_any(value, choices) as
    (len(choices) = 0 or value in (select unnest(choices)));

create or replace macro in_pairs_or_any(workchain, account, workchains, accounts) as
    (
        len(accounts) = 0
        or (workchain, account) in (
            select unnest(workchains::integer[]), unnest(accounts::blob[])
        )
    );

-- True if a value equals the parameter; NULL allows any.
create or replace macro equal_or_any(value, choice) as
    (choice is null or value = choice);

-- A value lies between two bounds, both included; a NULL bound is open.
create or replace macro in_range(value, first, last) as
    ((first is null or value >= first) and (last is null or value <= last));

-- A time lies within UTC days, both included; a NULL bound is open. Unlike its date, which each row
-- would have to be read for, a time between two others skips what is outside.
create or replace macro in_days(moment, first, last) as
    (
        (first is null or moment >= first::date::timestamp)
        and (last is null or moment < (last::date + 1)::timestamp)
    );

-- True if a sender or a recipient is in a list of addresses; an empty list allows any.
create or replace macro is_move_of(
    source_workchain,
    source,
    destination_workchain,
    destination,
    workchains,
    accounts,
    outgoing,
    incoming
) as
    (
        len(accounts) = 0
        or (
            outgoing
            and (source_workchain, source) in (
                select unnest(workchains::integer[]), unnest(accounts::blob[])
            )
        )
        or (
            incoming
            and (destination_workchain, destination) in (
                select unnest(workchains::integer[]), unnest(accounts::blob[])
            )
        )
    );

-- True if an address equals the parameters; a NULL account allows any.
create or replace macro address_or_any(workchain, account, workchain_choice, account_choice) as
    (account_choice is null or (workchain = workchain_choice and account = account_choice));

-- True if a position in an ordered list comes after another; a NULL position is the beginning.
create or replace macro comes_after(place, other, other_end, descending) as
    (other_end is null or if(descending, place < other, place > other));

-- The newest row of every account in a table of contracts at a masterchain block; NULL: now. This
-- is a join: row_number() takes three to five times as long, mostly for columns that queries skip.
-- At the baseline's block an account may have a second, equal row from the block itself.
create or replace macro as_of(relation, master_seqno) as table
    select distinct on (held.workchain, held.account) held.*
    from query_table(relation) as held
    join (
        select
            workchain,
            account,
            max(mc_seqno) as newest
        from query_table(relation)
        where master_seqno is null or mc_seqno <= master_seqno
        group by workchain, account
    ) as places
        on held.workchain = places.workchain
        and held.account = places.account
        and held.mc_seqno = newest;

-- The same, now.
create or replace macro latest(relation) as table
    select *
    from as_of(relation, null);

-- The sort key of an account's states: a masterchain block may commit several.
create or replace macro state_place(mc_seqno, block_seqno) as
    mc_seqno * 4294967296 + block_seqno;

-- The newest state of every account at a masterchain block; NULL: now. Joined on the block alone, too,
-- whose bounds show which files can have it.
create or replace macro states_as_of(relation, master_seqno) as table
    select distinct on (held.workchain, held.account) held.*
    from query_table(relation) as held
    join (
        select
            workchain,
            account,
            max(mc_seqno) as newest_seqno,
            max(state_place(mc_seqno, block_seqno)) as newest
        from query_table(relation)
        where master_seqno is null or mc_seqno <= master_seqno
        group by workchain, account
    ) as places
        on held.workchain = places.workchain
        and held.account = places.account
        and held.mc_seqno = newest_seqno
        and state_place(held.mc_seqno, held.block_seqno) = newest;

-- The newest row of given accounts in a table of contracts.
create or replace macro latest_of(relation, workchains, accounts) as table
    select *
    from query_table(relation)
    where (workchain, account) in (select unnest(workchains::integer[]), unnest(accounts::blob[]))
    qualify row_number() over (partition by workchain, account order by mc_seqno desc) = 1;

-- The newest row of each given account in a table of contracts, up to a masterchain block per
-- account; the lists are parallel, and the column asked_at has the block.
create or replace macro newest_until(relation, workchains, accounts, mc_seqnos) as table
    select picked.*, asked_at
    from (
        select
            unnest(workchains::integer[]) as workchain,
            unnest(accounts::blob[]) as account,
            unnest(mc_seqnos::bigint[]) as asked_at
    ) asked
    asof join (
        select * from query_table(relation) where account in (select unnest(accounts::blob[]))
    ) picked
        on asked.account = picked.account
        and asked.workchain = picked.workchain
        and asked.asked_at >= picked.mc_seqno;

-- Rows returned by `as_of` that are also in `matching` (workchain, account, mc_seqno);
-- first_lt is the logical time of the account's first row.
create or replace macro matching_as_of(relation, matching, master_seqno) as table
    select *
    from (
        select
            *,
            min(lt) over (partition by workchain, account) as first_lt
        from query_table(relation)
        where
            (master_seqno is null or mc_seqno <= master_seqno)
            and (workchain, account) in (select workchain, account from query_table(matching))
        qualify row_number() over (partition by workchain, account order by mc_seqno desc) = 1
    )
    where (workchain, account, mc_seqno) in (
        select
            workchain,
            account,
            mc_seqno
        from query_table(matching)
    );

-- The rows of `actions` or `action_accounts` that pass the filters of a page, after a position.
create or replace macro actions_page(
    relation,
    master_seqno,
    first_utime,
    last_utime,
    first_lt,
    last_lt,
    types,
    excluded,
    hidden_under,
    by_time,
    descending,
    after_end,
    after_trace,
    after_action,
    after_id
) as table
    select *
    from query_table(relation)
    where
        equal_or_any(mc_seqno, master_seqno)
        and in_range(trace_end_utime, first_utime, last_utime)
        and in_range(trace_end_lt, first_lt, last_lt)
        and in_list_or_any(type, types::text[])
        and not in_list(type, excluded::text[])
        and not list_has_any(ancestor_type, hidden_under::text[])
        and comes_after(
            (
                if(by_time, trace_end_utime, trace_end_lt),
                trace_id,
                if(by_time, end_utime, end_lt),
                action_id
            ),
            (after_end, after_trace, after_action, after_id),
            after_end,
            descending
        );

-- The columns of `actions`.
create or replace macro action_rows(relation) as table
    select
        trace_id,
        action_id,
        type,
        success,
        start_lt,
        end_lt,
        start_utime,
        end_utime,
        mc_seqno_end,
        mc_seqno,
        trace_end_lt,
        trace_end_utime,
        trace_external_hash,
        trace_external_hash_norm,
        tx_hashes,
        accounts,
        source,
        source_secondary,
        destination,
        destination_secondary,
        asset,
        asset_secondary,
        asset2,
        asset2_secondary,
        opcode,
        amount,
        value,
        value_extra_currencies,
        details,
        parent_action_id,
        ancestor_type,
        rule,
        classifier_version
    from query_table(relation);

-- The traces that pass the filters of a page, after a position.
create or replace macro traces_page(
    relation,
    master_seqno,
    first_utime,
    last_utime,
    first_lt,
    last_lt,
    by_time,
    descending,
    after_end,
    after_id
) as table
    select
        trace_id,
        external_hash,
        external_hash_norm,
        mc_seqno_start,
        mc_seqno_end,
        start_lt,
        end_lt,
        start_utime,
        end_utime,
        state,
        transactions,
        messages,
        pending_messages
    from query_table(relation)
    where
        (master_seqno is null or (mc_seqno_end = master_seqno and state = 'complete'))
        and in_range(end_utime, first_utime, last_utime)
        and in_range(end_lt, first_lt, last_lt)
        and comes_after(
            (if(by_time, end_utime, end_lt), trace_id),
            (after_end, after_id),
            after_end,
            descending
        );

-- Keys of the transactions that pass all filters; a filter that is NULL or empty is ignored.
create or replace macro transactions_page(
    relation,
    block_workchain,
    block_shard,
    seqno,
    master_seqno,
    only_lt,
    is_aborted,
    first_utime,
    last_utime,
    first_lt,
    last_lt,
    hashes,
    excluded_workchains,
    excluded_accounts
) as table
    select
        workchain,
        account,
        hash,
        lt,
        now
    from query_table(relation)
    where
        equal_or_any(workchain, block_workchain)
        and equal_or_any(shard, block_shard)
        and equal_or_any(block_seqno, seqno)
        and equal_or_any(mc_seqno, master_seqno)
        and equal_or_any(lt, only_lt)
        and equal_or_any(aborted, is_aborted)
        and in_range(now, first_utime, last_utime)
        and in_range(lt, first_lt, last_lt)
        and (len(hashes) = 0 or list_contains(hashes::blob[], hash))
        and (
            len(excluded_accounts) = 0
            or not list_contains(
                list_zip(excluded_workchains::integer[], excluded_accounts::blob[]),
                row(workchain, account)
            )
        );
