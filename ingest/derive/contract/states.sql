with picked as (from account_states where account in (select unnest($accounts)))
select
    workchain, account, mc_seqno, last_trans_lt, utime,
    balance, extra_currencies, code_hash, data_hash
from states_as_of('picked', $before - 1);

select
    workchain, account, mc_seqno, last_trans_lt, utime,
    balance, extra_currencies, code_hash, data_hash
from account_states
where account in (select unnest($accounts)) and mc_seqno <= $until
qualify row_number() over (
    partition by workchain, account, code_hash, data_hash order by mc_seqno, block_seqno desc
) = 1
order by mc_seqno
