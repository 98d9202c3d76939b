"""The routes of version 3."""

from __future__ import annotations

from tonlake.api.v3.page import metadata
from tonlake.api.v3.route import (
    account,
    action,
    balance,
    block,
    decode,
    jetton,
    message,
    method,
    multisig,
    name,
    nft,
    pending,
    trace,
    transaction,
    vesting,
    wallet,
)

_SUBJECTS = (
    *(block, transaction, message, trace, action, account, wallet, decode, method, metadata),
    *(jetton, nft, name, multisig, vesting, pending, balance),
)

described = [route for subject in _SUBJECTS for route in subject.routes]
"""The routes in the OpenAPI document; those for authors of clients are left out."""

routes = [*described, *decode.hidden_routes]
