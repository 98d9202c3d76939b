"""The routes of version 3."""

from __future__ import annotations

from tonlake.api.v3.page import metadata
from tonlake.api.v3.route import account as account_routes
from tonlake.api.v3.route import action as action_routes
from tonlake.api.v3.route import balance as balance_routes
from tonlake.api.v3.route import block as block_routes
from tonlake.api.v3.route import decode
from tonlake.api.v3.route import echo as echo_routes
from tonlake.api.v3.route import jetton as jetton_routes
from tonlake.api.v3.route import message as message_routes
from tonlake.api.v3.route import method as method_routes
from tonlake.api.v3.route import multisig as multisig_routes
from tonlake.api.v3.route import name as name_routes
from tonlake.api.v3.route import nft as nft_routes
from tonlake.api.v3.route import pending as pending_routes
from tonlake.api.v3.route import trace as trace_routes
from tonlake.api.v3.route import transaction as transaction_routes
from tonlake.api.v3.route import vesting as vesting_routes
from tonlake.api.v3.route import wallet as wallet_routes

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
