"""The routes of version 3."""

from tonlake.api.v3.page import metadata
from tonlake.api.v3.route import account, balance, block, contract, decode, run, token, trace

_SUBJECTS = (block, trace, account, decode, metadata, token, contract, run, balance)

described = [route for subject in _SUBJECTS for route in subject.routes]
"""The routes in the OpenAPI document; those for authors of clients are left out."""

routes = [*described, *decode.hidden_routes]
