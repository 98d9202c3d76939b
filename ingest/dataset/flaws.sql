reset disabled_optimizers;  -- the number of rows is known now

-- What the loaded rows of a masterchain block lack: its block is then left out.
create or replace table flaws as
with shard_blocks as (
    select
        workchain,
        shard,
        seqno,
        mc_seqno,
        after_merge,
        cast(shard as hugeint) & 18446744073709551615 as place
    from blocks
    where workchain <> -1 and seqno between 1 and 4294967295
),
-- Blocks that do not follow one of the same shard, and the shards that may have the one before.
firsts as (
    select
        *,
        place & -place as bit,
        [place - bit // 2, place + bit // 2] as children,
        unnest(
            if(after_merge, children, list_concat([place, (place - bit) | 2 * bit], children))
        ) as parent
    from shard_blocks
    anti join shard_blocks as before on
        shard_blocks.workchain = before.workchain
        and shard_blocks.place = before.place
        and shard_blocks.seqno = before.seqno + 1
    where seqno > 1
),
follows as (
    select
        firsts.workchain,
        firsts.shard,
        firsts.seqno,
        firsts.mc_seqno,
        -- Blocks before the first row are unknown; from masterchain block 1 on there are none.
        case
            when count(before.seqno) < 2 and firsts.after_merge then null
            else coalesce(max(before.seqno), if($first = 1, 0, null))
        end as last_seqno,
        case
            when firsts.after_merge then min(before.mc_seqno)
            else coalesce(arg_max(before.mc_seqno, before.seqno), 1)
        end as last_mc_seqno
    from firsts
    asof left join shard_blocks as before on
        firsts.workchain = before.workchain
        and firsts.parent = before.place
        and firsts.seqno > before.seqno
    group by
        firsts.workchain, firsts.shard, firsts.seqno, firsts.mc_seqno, firsts.after_merge
),
-- Of the gaps that begin up to a masterchain block, the one that ends last.
gaps as (
    select
        last_mc_seqno,
        max(mc_seqno) over (order by last_mc_seqno) as mc_seqno,
        arg_max(struct_pack(workchain, shard, last_seqno, seqno), mc_seqno)
            over (order by last_mc_seqno) as named
    from follows
    where last_seqno <> seqno - 1
)
select mc_seqno, min(reason) as reason
from (
    -- Missing blocks may be of any masterchain block from that of the one before on: some have two
    -- of a shard.
    select
        heads.mc_seqno,
        format(
            'shard ({},{}) lacks the blocks between {} and {}',
            named.workchain, named.shard, named.last_seqno, named.seqno
        ) as reason
    from blocks as heads
    asof join gaps on heads.mc_seqno >= gaps.last_mc_seqno
    where heads.workchain = -1 and heads.mc_seqno <= gaps.mc_seqno
    union all
    -- Their shard blocks may be those of the day before.
    select
        mc_seqno,
        format('the data set lacks the blocks of {}', $lacking)
    from blocks
    where
        workchain = -1
        and gen_utime < $morning
        and mc_seqno <= (select max(mc_seqno) from follows where last_seqno is null)
    union all
    select
        mc_seqno,
        format(
            'block ({},{},{}) has {} transactions, and there are {}',
            workchain, shard, seqno, tx_count, found
        ) as reason
    from (
        select
            blocks.mc_seqno,
            blocks.workchain,
            blocks.shard,
            blocks.seqno,
            blocks.tx_count,
            count(transactions.lt) as found
        from blocks
        left join transactions on
            blocks.workchain = transactions.workchain
            and blocks.shard = transactions.shard
            and blocks.seqno = transactions.block_seqno
        group by all
    )
    where found <> tx_count
    union all
    select
        mc_seqno,
        concat('a transaction at lt ', lt, ' lacks a value or has a wrong one')
    from transactions
    where
        workchain is null
        or account is null
        or lt is null
        or hash is null
        or now is null
        or time is null
        or prev_trans_hash is null
        or prev_trans_lt is null
        or orig_status is null
        or end_status is null
        or total_fees is null
        or account_state_hash_before is null
        or account_state_hash_after is null
        or descr is null
        or compute_mode not between -128 and 127
        or least(
            compute_exit_code, compute_exit_arg, action_result_code, action_result_arg,
            action_tot_actions, action_spec_actions, action_skipped_actions, action_msgs_created,
            split_info_cur_shard_pfx_len, split_info_acc_split_depth
        ) < -2147483648
        or greatest(
            compute_exit_code, compute_exit_arg, action_result_code, action_result_arg,
            action_tot_actions, action_spec_actions, action_skipped_actions, action_msgs_created,
            split_info_cur_shard_pfx_len, split_info_acc_split_depth
        ) > 2147483647
    union all
    select
        mc_seqno,
        format(
            'a message of transaction {} lacks a value or has a wrong one', lower(hex(tx_hash))
        )
    from messages
    where
        coalesce(direction not in ('in', 'out'), true)
        or msg_hash is null
        or body_hash is null
        or opcode not between -2147483648 and 2147483647
        or (kind <> 'ext_in' and (source_workchain is null or source is null))
        or (kind <> 'ext_out' and (destination_workchain is null or destination is null))
    union all
    select
        mc_seqno,
        concat(
            'block (', workchain, ',', shard, ',', seqno, ') lacks a value or has a wrong one'
        )
    from blocks
    where
        coalesce(workchain not between -2147483648 and 2147483647, true)
        or shard is null
        or seqno is null
        or (workchain = -1 and seqno <> mc_seqno)
        or root_hash is null
        or file_hash is null
        or coalesce(global_id not between -2147483648 and 2147483647, true)
        or version is null
        or after_merge is null
        or before_split is null
        or after_split is null
        or want_split is null
        or want_merge is null
        or key_block is null
        or vert_seqno_incr is null
        or coalesce(flags not between -2147483648 and 2147483647, true)
        or vert_seqno is null
        or gen_utime is null
        or time is null
        or start_lt is null
        or end_lt is null
        or coalesce(validator_list_hash_short not between -2147483648 and 2147483647, true)
        or gen_catchain_seqno is null
        or min_ref_mc_seqno is null
        or prev_key_block_seqno is null
        or master_ref_seqno is null
        or rand_seed is null
        or created_by is null
        or tx_count is null
    union all
    select
        transactions.mc_seqno,
        format('transaction {} is of a block that is not there', lower(hex(transactions.hash)))
    from transactions
    anti join blocks on
        transactions.workchain = blocks.workchain
        and transactions.shard = blocks.shard
        and transactions.block_seqno = blocks.seqno
    union all
    select
        mc_seqno,
        format(
            'transaction {} has {} in messages and {} of {} out messages',
            lower(hex(hash)), in_count, out_count, expected
        )
    from (
        select
            transactions.mc_seqno,
            transactions.hash,
            transactions.descr,
            -- A failed action phase sends nothing, whatever it created.
            if(transactions.action_success, coalesce(transactions.action_msgs_created, 0), 0)
            + cast(if(transactions.bounce = 'ok', 1, 0) as hugeint) as expected,
            count(*) filter (messages.direction = 'in') as in_count,
            count(*) filter (messages.direction = 'out') as out_count
        from transactions
        left join messages on transactions.hash = messages.tx_hash
        group by all
    )
    where out_count <> expected or (descr = 'ord' and in_count <> 1)
    union all
    select
        mc_seqno,
        format(
            'account {}:{} has no state {} after transaction {}',
            workchain, lower(hex(account)), lower(hex(hash)), lower(hex(last_trans_hash))
        )
    from account_states
    where account_status is null
    union all
    select
        greatest(mc_seqno, 1),
        concat('account ', workchain, ':', lower(hex(account)), ' lacks a value or has a wrong one')
    from account_states
    where
        workchain is null
        or account is null
        or utime is null
        or hash is null
        or account_status is null
        or balance is null
        or last_trans_lt is null
        or last_trans_hash is null
)
where
    reason is not null  -- a row without a value has a reason of its own
    and mc_seqno between $first and $last
group by mc_seqno
