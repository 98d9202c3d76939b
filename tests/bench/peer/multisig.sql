-- The newest state of each multisig wallet.
select
    peer_address(workchain, account) as address,
    next_order_seqno,
    threshold,
    '{' || list_aggregate(signers, 'string_agg', ',') || '}' as signers,
    '{' || list_aggregate(proposers, 'string_agg', ',') || '}' as proposers,
    lt as last_transaction_lt,
    peer_hash(code_hash) as code_hash,
    peer_hash(data_hash) as data_hash
from multisig_wallets
qualify row_number() over (partition by workchain, account order by lt desc) = 1
