-- The ends of messages of the loaded transactions.
create or replace table messages as
with ends as (
    select
        hash_of(tx_hash) as tx_hash,
        direction,
        hash_of(msg_hash) as msg_hash,
        source,
        destination,
        value,
        fwd_fee,
        ihr_fee,
        created_lt,
        created_at,
        ihr_disabled,
        bounce,
        bounced,
        import_fee,
        opcode,
        hash_of(body_hash) as body_hash,
        body_boc,
        hash_of(init_state_hash) as init_state_hash,
        init_state_boc
    from incoming
    where tx_now between $start and $end
)
select
    ends.tx_hash,
    transactions.mc_seqno,
    ends.direction,
    ends.msg_hash,
    case
        when ends.source is null then 'ext_in'
        when ends.destination is null then 'ext_out'
        else 'int'
    end as kind,
    workchain_of(ends.source) as source_workchain,
    account_of(ends.source) as source,
    workchain_of(ends.destination) as destination_workchain,
    account_of(ends.destination) as destination,
    ends.value,
    ends.fwd_fee,
    ends.ihr_fee,
    case when ends.source is not null then ends.created_lt end as created_lt,
    case when ends.source is not null then ends.created_at end as created_at,
    ends.ihr_disabled,
    ends.bounce,
    ends.bounced,
    ends.import_fee,
    -- The form may have them unsigned.
    if(
        ends.opcode between 2147483648 and 4294967295, ends.opcode - 4294967296, ends.opcode
    ) as opcode,
    ends.body_hash,
    ends.body_boc as body,
    ends.init_state_hash,
    ends.init_state_boc as init_state
from ends
join transactions on ends.tx_hash = transactions.hash
