-- Jetton transfers, by the wallet that sent or received them.
select
    peer_hash(tx_hash) as tx_hash,
    lt as tx_lt,
    now as tx_now,
    aborted as tx_aborted,
    mc_seqno,
    query_id,
    amount,
    peer_address(source_workchain, source) as source,
    peer_address(destination_workchain, destination) as destination,
    peer_address(workchain, account) as jetton_wallet_address,
    peer_address(jetton_workchain, jetton) as jetton_master_address,
    peer_address(response_destination_workchain, response_destination) as response_destination,
    base64(custom_payload) as custom_payload,
    forward_ton_amount,
    base64(forward_payload) as forward_payload
from jetton_transfers
