create or replace view v_new_contracts as
select
    transactions.time,
    ton_address(transactions.workchain, transactions.account) as address,
    transactions.workchain,
    transactions.account,
    labels.label,
    states.code_hash,
    codes.interfaces,
    transactions.hash as tx_hash,
    transactions.lt,
    transactions.mc_seqno,
    transactions.day
from transactions
left join account_states as states
    on transactions.account = states.account
    and transactions.workchain = states.workchain
    and transactions.mc_seqno = states.mc_seqno
    and transactions.block_seqno = states.block_seqno
left join known_codes('interfaces') as codes
    on states.code_hash = codes.code_hash
left join labels
    on transactions.account = labels.account and transactions.workchain = labels.workchain
-- Of most rows, those of active accounts, this reads no other column.
where
    orig_status <> 'active'
    and orig_status in ('uninit', 'nonexist')
    and end_status = 'active';
