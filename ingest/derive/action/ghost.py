"""Ghosts: what an external message that failed would have made its wallet send.

Bodies of wallets begin with a signature; the versions differ in the bits behind it, so that the
number of bits and references tells them apart. Sources: the contracts of wallets v1 to v5 and of
highload wallets v2 and v3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.block.message import MessageDecoder
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.derive.action.basic import make_block
from tonlake.ingest.derive.action.block import TRANSFER
from tonlake.ingest.derive.action.model import Message
from tonlake.ingest.derive.action.node import Node
from tonlake.ingest.derive.action.pattern import UNREADABLE
from tonlake.ingest.derive.action.protocol import jetton
from tonlake.ingest.derive.action.row import Action, make_action, name_action
from tonlake.ingest.errors import ActionUnreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tonlake.ingest.decode.cell.tree import CellTree
    from tonlake.ingest.derive.action.block import Block
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.model import Trace, Transaction

_V5_OPCODES = {0x7369676E, 0x73696E74}
_SEND_OPCODE = 0x0EC3C86D
_SIGNATURE_BITS = 512
_MODE_BITS = 8
_V1_BITS, _V2_BITS, _V3_BITS, _V4_BITS = 32, 64, 96, 104
_HIGHLOAD_V2_BITS = 32 + 64 + 1
_HIGHLOAD_KEY_BITS = 16
_MAX_MESSAGES = 255
"""Most messages that one run of a contract can send. TVM: c5 holds at most 255 actions."""


def make_ghosts(trace: Trace, interfaces: Interfaces) -> list[Action]:
    """Return the transfers that a trace of one failed external message was to make; [] if none."""
    transaction = trace.transactions[0]
    external = transaction.in_msg
    if len(trace.transactions) != 1 or external is None or transaction.out_msgs:
        return []
    if external.source is not None:
        return []
    try:
        blocks = [
            _make_ghost(message, transaction, interfaces)
            for message in read_outgoing(external, transaction.account)
        ]
    except UNREADABLE:
        return []
    actions: list[Action] = []
    for block in blocks:
        if block is not None:
            actions.append(_make_action(block, [action.action_id for action in actions]))
    return actions


def read_outgoing(external: Message, account: str) -> list[Message]:
    """Return the messages in the body of an external message to a wallet.

    Raises:
        ActionUnreadable: the body is none of a known wallet.
        IngestError, ValueError, IndexError: a cell of it is not as it must be.
    """
    body = external.content.rest()
    tree = body.tree
    decoder = MessageDecoder(tree, None)
    cells = list(_list_cells(tree, body.cell))
    return [_read_message(decoder, cell, account) for cell in cells[:_MAX_MESSAGES]]


def _list_cells(tree: CellTree, root: int) -> Iterator[int]:
    body = tree.slice(root)
    refs = tree.refs(root)
    if body.bits_left >= _SIGNATURE_BITS and body.peek_uint(32) in _V5_OPCODES:
        body.skip(32 + 96)
        actions = body.load_maybe_ref()
        yield from _list_actions(tree, actions)
        return
    extra = body.bits_left - _SIGNATURE_BITS - _MODE_BITS * len(refs)
    if extra in {_V1_BITS, _V2_BITS, _V3_BITS, _V4_BITS} and refs:
        yield from refs
    elif body.bits_left - _SIGNATURE_BITS == _HIGHLOAD_V2_BITS and len(refs) == 1:
        for _key, value in iter_hashmap(tree, refs[0], _HIGHLOAD_KEY_BITS):
            yield value.load_ref()
    elif body.bits_left == _SIGNATURE_BITS and len(refs) == 1:
        yield from tree.refs(refs[0])[:1]
    else:
        raise ActionUnreadable("the body is that of no known wallet")


def _list_actions(tree: CellTree, last: int | None) -> Iterator[int]:
    """Yield the messages of an OutList, the first action first."""
    found = []
    while last is not None and tree.bit_length(last):
        action = tree.slice(last)
        before = action.load_ref()
        if action.load_uint(32) == _SEND_OPCODE:
            found.append(action.load_ref())
        last = before
    yield from reversed(found)


def _read_message(decoder: MessageDecoder, cell: int, account: str) -> Message:
    row = dict(zip(_COLUMNS, decoder.decode(cell)[2:], strict=False))
    destination = row["destination"]
    opcode = row["opcode"]
    return Message(
        msg_hash=decoder.decode(cell)[0],
        source=account,
        destination=(
            f"{row['destination_workchain']}:{destination.hex().upper()}" if destination else None
        ),
        value=row["value"],
        opcode=None if opcode is None else opcode & 0xFFFFFFFF,
        bounce=bool(row["bounce"]),
        boc=row["body"],
    )


_COLUMNS = (
    *("kind", "source_workchain", "source", "source_kind", "destination_workchain"),
    *("destination", "destination_kind", "value", "value_extra_currencies", "fwd_fee", "ihr_fee"),
    *("extra_flags", "created_lt", "created_at", "ihr_disabled", "bounce", "bounced"),
    *("import_fee", "opcode", "body_hash", "body"),
)


def _make_ghost(message: Message, transaction: Transaction, interfaces: Interfaces) -> Block | None:
    """Return the block of a transfer that was not sent; None for a call of another kind."""
    if message.destination is None:
        return None
    block = make_block(Node(message, transaction, is_log=True))
    block.children.clear()
    if block.type == TRANSFER:
        return block
    if message.opcode == jetton.TRANSFER:
        return jetton.make_ghost(block, interfaces)
    return None


def _make_action(block: Block, taken: Sequence[bytes]) -> Action:
    """Return the action, which lists no account that it did not reach.

    Messages that are the same all over are told apart by their number.
    """
    block.failed = True
    action = make_action(block)
    unreached = block.columns["destination"]
    action.accounts = [account for account in action.accounts if account != unreached]
    action.rule = "ghost"
    first, number = action.action_id, 1
    while action.action_id in taken:
        number += 1
        action.action_id = name_action(first, f"{block.type}{number}")
    return action
