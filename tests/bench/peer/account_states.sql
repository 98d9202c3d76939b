-- The states of accounts after blocks, each hash once.
select
    peer_hash(hash) as hash,
    any_value(peer_address(workchain, account)) as account,
    any_value(balance) as balance,
    any_value(extra_currencies) as balance_extra_currencies,
    any_value(account_status) as account_status,
    any_value(peer_hash(frozen_hash)) as frozen_hash,
    any_value(peer_hash(data_hash)) as data_hash,
    any_value(peer_hash(code_hash)) as code_hash
from account_states
group by account_states.hash
