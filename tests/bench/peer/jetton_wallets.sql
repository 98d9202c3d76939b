-- The newest state of each jetton wallet, which is all that the peer keeps.
select
    peer_address(workchain, account) as address,
    balance,
    peer_address(owner_workchain, owner) as owner,
    peer_address(jetton_workchain, jetton) as jetton,
    lt as last_transaction_lt,
    peer_hash(code_hash) as code_hash,
    peer_hash(data_hash) as data_hash
from jetton_wallets
qualify row_number() over (partition by workchain, account order by lt desc) = 1
