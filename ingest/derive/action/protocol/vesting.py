"""Vesting wallets: messages that they send, and accounts that they may send to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import call
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.body import Body
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match

SEND, SENT = 0xA7733ACD, 0xF7733ACD
ADD_WHITELIST, WHITELIST_ADDED = 0x7258A69B, 0xF258A69B
_INT_MSG_FLAGS = 4
"""int_msg_info$0 ihr_disabled bounce bounced"""


def _make_send(match: Match, _interfaces: Interfaces) -> Draft:
    """The owner lets the vesting wallet send a message."""
    message = match.block.message
    body = message.arguments()
    query_id = body.uint(64)
    inner = body.skip(8).ref()
    data = {"query_id": query_id, "message_boc": inner.copy().boc(crc32c=False)}
    inner.skip(_INT_MSG_FLAGS).address()
    columns = {
        "source": message.source,
        "destination": message.destination,
        "destination_secondary": inner.address(),
        "amount": inner.coins(),
        "vesting_send_message_data": data,
    }
    return Draft("vesting_send_message", columns)


def _make_add_whitelist(match: Match, _interfaces: Interfaces) -> Draft:
    """Accounts are added to those that locked coins may go to."""
    message = match.block.message
    body = message.arguments()
    data = {"query_id": body.uint(64), "accounts_added": _read_accounts(body)}
    columns = {
        "source": message.source,
        "destination": message.destination,
        "vesting_add_whitelist_data": data,
    }
    return Draft("vesting_add_whitelist", columns)


def _read_accounts(body: Body) -> list[str]:
    """Read one address a cell, along the chain of first references."""
    accounts = []
    while True:
        account = body.address()
        if account is not None:
            accounts.append(account)
        if not body.refs_left:
            return accounts
        body = body.ref()


SEND_RULE = Rule("vesting.send_message", call(SEND).then(call(SENT)), _make_send)
ADD_WHITELIST_RULE = Rule(
    "vesting.add_whitelist", call(ADD_WHITELIST).then(call(WHITELIST_ADDED)), _make_add_whitelist
)
