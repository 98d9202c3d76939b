"""Wallets of version 5 to which an extension is added, or from which one is removed.

The service's rule is not public: the columns are those of its test cases; the first extended action
of a request from outside counts, and compute phases that failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import call
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match

SIGNED = 0x7369676E
_TYPES = {2: "wallet_v5_add_extension", 3: "wallet_v5_remove_extension"}
_SUCCESSES = {None, 0, 1}


def _make_change(match: Match, _interfaces: Interfaces) -> Draft | None:
    """Read the request. TL-B: W5SignedRequest, W5Request, W5ExtendedAction."""
    message, transaction = match.block.message, match.block.transaction
    body = message.arguments()
    data = {"wallet_id": body.uint(32), "valid_until": body.uint(32), "seqno": body.uint(32)}
    body.maybe_ref()
    kind = _TYPES.get(body.uint(8)) if body.bit() else None
    if kind is None:
        return None
    extension = body.address()
    columns = {
        "source": message.destination,
        "destination": extension,
        "wallet_v5_extension_data": data | {"signature_allowed": None},
    }
    failed = transaction.aborted or transaction.exit_code not in _SUCCESSES
    return Draft(kind, columns, failed=failed)


def _is_from_outside(block: Block) -> bool:
    return block.message.source is None and not block.nodes[0].is_log


CHANGE_RULE = Rule("wallet_extension.change", call(SIGNED).where(_is_from_outside), _make_change)
