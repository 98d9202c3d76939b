-- The newest records of each domain.
select
    peer_address(workchain, account) as nft_item_address,
    peer_address(owner_workchain, owner) as nft_item_owner,
    domain,
    peer_address(next_resolver_workchain, next_resolver) as dns_next_resolver,
    peer_address(wallet_workchain, wallet) as dns_wallet,
    lower(hex(site_adnl)) as dns_site_adnl,
    lower(hex(storage_bag_id)) as dns_storage_bag_id,
    lt as last_transaction_lt
from dns_records
qualify row_number() over (partition by workchain, account order by lt desc) = 1
