"""The routes of version 3."""

from __future__ import annotations

from api.v3 import (
    account_routes,
    action_routes,
    balance_routes,
    block_routes,
    decode,
    echo_routes,
    jetton_routes,
    message_routes,
    metadata,
    method_routes,
    multisig_routes,
    name_routes,
    nft_routes,
    pending_routes,
    trace_routes,
    transaction_routes,
    vesting_routes,
    wallet_routes,
)

routes = [
    *block_routes.routes,
    *transaction_routes.routes,
    *message_routes.routes,
    *trace_routes.routes,
    *action_routes.routes,
    *account_routes.routes,
    *wallet_routes.routes,
    *decode.routes,
    *method_routes.routes,
    *metadata.routes,
    *jetton_routes.routes,
    *nft_routes.routes,
    *name_routes.routes,
    *multisig_routes.routes,
    *vesting_routes.routes,
    *pending_routes.routes,
    *balance_routes.routes,
    *echo_routes.routes,
]
