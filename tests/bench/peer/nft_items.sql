-- The newest state of each NFT item.
select
    peer_address(workchain, account) as address,
    init,
    item_index as index,
    peer_address(collection_workchain, collection) as collection_address,
    peer_address(owner_workchain, owner) as owner_address,
    content,
    lt as last_transaction_lt,
    peer_hash(code_hash) as code_hash,
    peer_hash(data_hash) as data_hash
from nft_items
qualify row_number() over (partition by workchain, account order by lt desc) = 1
