"""Vesting wallets: messages that they send, and their whitelist of destinations."""

from tonlake.ingest.decode.block.message import MessageDecoder
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.action.body import Body
from tonlake.ingest.derive.action.model import CELL_COLUMNS
from tonlake.ingest.derive.action.pattern import Match, call
from tonlake.ingest.derive.action.rule import Draft, rule
from tonlake.ingest.errors import IngestError

SEND, SENT = 0xA7733ACD, 0xF7733ACD
ADD_WHITELIST, WHITELIST_ADDED = 0x7258A69B, 0xF258A69B
_INT_MSG_FLAGS = 4
"""int_msg_info$0 ihr_disabled bounce bounced"""


def _hash_body(requested: Body) -> bytes | None:
    """Return the hash of the body of a message; None if it cannot be parsed.

    TL-B: message$_ info:CommonMsgInfoRelaxed init:(Maybe ...) body:(Either X ^X).
    """
    place = requested.rest()
    try:
        columns = MessageDecoder(place.tree, None).decode(place.cell)
    except (IngestError, ValueError, LookupError):
        return None
    body_hash: bytes | None = dict(zip(CELL_COLUMNS, columns, strict=True))["body_hash"]
    return body_hash


def _read_accounts(body: Body) -> list[str]:
    """Read one address per cell, along the chain of first references."""
    accounts = []
    while True:
        account = body.address()
        if account is not None:
            accounts.append(account)
        if not body.refs_left:
            return accounts
        body = body.ref()


@rule("vesting.send_message", call(SEND).then(call(SENT)))
def send_message(match: Match) -> Draft:
    """Draft a message that the owner sends from the vesting wallet."""
    block = match.block
    query_id, _mode, inner = block.arguments().take(64, 8, "ref")
    data = {"query_id": query_id, "message_boc": inner.copy().boc(crc32c=False)}
    body_hash = _hash_body(inner)
    *_, destination, amount = inner.take(_INT_MSG_FLAGS, "address", "address", "coins")
    columns = block.pick("source", "destination") | {
        "destination_secondary": destination,
        "amount": amount,
        "vesting_send_message_data": data,
    }
    sent = [each for each in block.transaction.out_msgs if each.destination == destination]
    if body_hash is None:
        is_sent = any(each.value == amount for each in sent)
    else:
        bodies = (parse_boc(each.boc) for each in sent if each.boc is not None)
        is_sent = any(body.hash(body.roots[0]) == body_hash for body in bodies)
    return Draft("vesting_send_message", columns, failed=not is_sent)


@rule("vesting.add_whitelist", call(ADD_WHITELIST).then(call(WHITELIST_ADDED)))
def add_whitelist(match: Match) -> Draft:
    """Draft the addition of accounts to the whitelist for locked coins."""
    body = match.block.arguments()
    data = {"query_id": body.uint(64), "accounts_added": _read_accounts(body)}
    columns = match.block.pick("source", "destination") | {"vesting_add_whitelist_data": data}
    return Draft("vesting_add_whitelist", columns)
