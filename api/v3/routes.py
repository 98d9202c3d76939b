"""The routes of version 3."""

from __future__ import annotations

from api.v3 import (
    account_routes,
    block_routes,
    decode,
    message_routes,
    method_routes,
    trace_routes,
    transaction_routes,
    wallet_routes,
)

routes = [
    *block_routes.routes,
    *transaction_routes.routes,
    *message_routes.routes,
    *trace_routes.routes,
    *account_routes.routes,
    *wallet_routes.routes,
    *decode.routes,
    *method_routes.routes,
]
