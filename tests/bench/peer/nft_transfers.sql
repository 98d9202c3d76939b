-- NFT transfers.
select
    peer_hash(tx_hash) as tx_hash,
    lt as tx_lt,
    now as tx_now,
    aborted as tx_aborted,
    mc_seqno,
    query_id,
    peer_address(workchain, account) as nft_item_address,
    item_index as nft_item_index,
    peer_address(collection_workchain, collection) as nft_collection_address,
    peer_address(old_owner_workchain, old_owner) as old_owner,
    peer_address(new_owner_workchain, new_owner) as new_owner,
    peer_address(response_destination_workchain, response_destination) as response_destination,
    base64(custom_payload) as custom_payload,
    forward_amount,
    base64(forward_payload) as forward_payload
from nft_transfers
