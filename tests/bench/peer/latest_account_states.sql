-- The newest state of every account.
select
    peer_address(workchain, account) as account,
    peer_hash(hash) as hash,
    balance,
    extra_currencies as balance_extra_currencies,
    account_status,
    utime as timestamp,
    peer_hash(last_trans_hash) as last_trans_hash,
    last_trans_lt,
    peer_hash(frozen_hash) as frozen_hash,
    peer_hash(data_hash) as data_hash,
    peer_hash(code_hash) as code_hash
from latest_account_states
