"""Ghosts: actions that an external message requested, but its wallet did not send.

Bodies of wallets of versions 3 and 4 begin with a signature; the length of the rest identifies the
version. Those of version 5 end with it. Telegram wallets have an opcode after it. Sources: the
contracts of these wallets, and the scheme in ``protocol.telegram``.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import TYPE_CHECKING

from tonlake.ingest.decode.block.message import MessageDecoder
from tonlake.ingest.derive.action.basic import is_failed, make_block
from tonlake.ingest.derive.action.block import CALL, TRANSFER
from tonlake.ingest.derive.action.model import Message
from tonlake.ingest.derive.action.node import Node
from tonlake.ingest.derive.action.pattern import UNREADABLE
from tonlake.ingest.derive.action.protocol import jetton, telegram
from tonlake.ingest.derive.action.row import Action, make_action, name_action
from tonlake.ingest.errors import ActionUnreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tonlake.ingest.decode.cell.tree import CellTree
    from tonlake.ingest.derive.action.block import Block
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.model import Trace, Transaction

_V5_OPCODE = 0x7369676E
_SEND_OPCODE = 0x0EC3C86D
_SIGNATURE_BITS = 512
_MODE_BITS = 8
_V3_BITS, _V4_BITS = 96, 104
_MAX_MESSAGES = 255
"""Maximum messages that one run of a contract can send. TVM: c5 holds at most 255 actions."""


def make_ghosts(trace: Trace, interfaces: Interfaces) -> list[Action]:
    """Return the actions requested by a trace of one external message; [] if none."""
    transaction = trace.transactions[0]
    external = transaction.in_msg
    if len(trace.transactions) != 1 or external is None or transaction.out_msgs:
        return []
    if external.source is not None:
        return []
    try:
        messages = read_outgoing(external, transaction.account)
    except UNREADABLE:
        return []
    actions = []
    for number, message in enumerate(messages):
        if message.destination is not None:
            block = _make_block(message, transaction, interfaces)
            action = make_action(block, is_ghost=True)
            action.action_id = name_action(_name_ghost(message, number), block.type)
            action.rule = "ghost"
            actions.append(action)
    return actions


def _name_ghost(message: Message, number: int) -> bytes:
    """Return the substitute for the hash of a message, which may occur several times."""
    return base64.b64encode(message.msg_hash) + str(number).encode()


def read_outgoing(external: Message, account: str) -> list[Message]:
    """Return the messages in the body of an external message to a wallet, as TON Center does.

    Raises:
        ActionUnreadable: the body is not one of a known wallet.
        IngestError, ValueError, IndexError: a cell of the body is malformed.
    """
    body = external.content.rest()
    tree = body.tree
    decoder = MessageDecoder(tree, None)
    cells = list(_list_cells(tree, body.cell))
    return [_read_message(decoder, cell, account) for cell in cells[:_MAX_MESSAGES]]


def _list_cells(tree: CellTree, root: int) -> Iterator[int]:
    body = tree.slice(root)
    refs = tree.refs(root)
    if telegram.find_request(body) is not None:
        yield from telegram.list_messages(body)
        return
    if body.bits_left >= _SIGNATURE_BITS and body.peek_uint(32) == _V5_OPCODE:
        body.skip(32 + 96)
        yield from _list_actions(tree, body.load_maybe_ref())
        return
    extra = body.bits_left - _SIGNATURE_BITS - _MODE_BITS * len(refs)
    if extra not in {_V3_BITS, _V4_BITS} or not refs:
        raise ActionUnreadable("the body is not one of a known wallet")
    yield from refs


def _list_actions(tree: CellTree, last: int | None) -> Iterator[int]:
    """Yield the messages of an OutList, last action first."""
    while last is not None and tree.bit_length(last):
        action = tree.slice(last)
        last = action.load_ref()
        if action.load_uint(32) == _SEND_OPCODE:
            yield action.load_ref()


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


def _make_block(message: Message, transaction: Transaction, interfaces: Interfaces) -> Block:
    """Return the block of a message that was not sent, as if it had arrived and been aborted."""
    node = Node(message, transaction, is_log=True)
    block = make_block(node)
    block.children.clear()
    if block.type == CALL and message.opcode == jetton.TRANSFER:
        with suppress(*UNREADABLE):
            block = jetton.make_ghost(block, interfaces)
    block.failed = is_failed(node, message, aborted=True, is_call=block.type != TRANSFER)
    return block
