"""Telegram wallets that get another key, by a request from outside or one that others pay for.

The wallet keeps the key without an event, so a request counts whose transaction ran to its end. A
request inside the chain that the wallet ignored without an error cannot be told from one that it
took: the states of single transactions are not at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import call
from tonlake.ingest.derive.action.request import CHANGE_KEY, CHANGE_KEY_EXTERNAL, read_key_change
from tonlake.ingest.derive.action.row import EXTRA
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match


def _make_change(match: Match, _interfaces: Interfaces) -> Draft | None:
    """A wallet has another key from now on."""
    block = match.block
    message, transaction = block.message, block.transaction
    form = CHANGE_KEY_EXTERNAL if message.source is None else CHANGE_KEY
    if block.opcode != form or block.nodes[0].is_log:
        return None
    if transaction.aborted or transaction.exit_code:
        return None
    columns = {
        "source": message.source,
        "destination": message.destination,
        "value": message.value if message.source is not None else None,
        EXTRA: read_key_change(message)._asdict(),
    }
    return Draft("change_wallet_key", columns)


CHANGE_RULE = Rule("wallet_key.change", call(CHANGE_KEY, CHANGE_KEY_EXTERNAL), _make_change)
