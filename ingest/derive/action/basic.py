"""Basic blocks: how a single message or a tick-tock transaction is shown before rules apply.

Ghosts are actions that an external message requested, but its wallet did not send. Bodies of
wallets of versions 3 and 4 begin with a signature; the length of the rest identifies the version.
Those of version 5 end with it. Telegram wallets have an opcode after it. Sources: the contracts of
these wallets, and the scheme in ``protocol.telegram``.
"""

import base64
from collections.abc import Iterator, Sequence
from contextlib import suppress

from tonlake.ingest.decode.block.message import MessageDecoder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.action.body import OPCODE_BITS, read_comment
from tonlake.ingest.derive.action.interface import Interfaces, show_address
from tonlake.ingest.derive.action.model import Message, Node, Trace, Transaction
from tonlake.ingest.derive.action.pattern import NEW_BOUNCE_OPCODE, UNREADABLE
from tonlake.ingest.derive.action.protocol import jetton, telegram
from tonlake.ingest.derive.action.row import ActionRow, make_action, name_action
from tonlake.ingest.derive.action.rule import (
    CALL,
    CLOCK,
    DEPLOY,
    EXTRA,
    GASLESS,
    TRANSFER,
    Block,
    Columns,
)
from tonlake.ingest.derive.body.codec import ENCRYPTED_OPCODE, TEXT_OPCODE
from tonlake.ingest.errors import BodyError, IngestError
from tonlake.lake.schema.action_type import CURRENCY_TRANSFER

_TRANSFER_OPCODES = {None, TEXT_OPCODE, ENCRYPTED_OPCODE}


def build_blocks(roots: Sequence[Node]) -> list[Block]:
    """Return the blocks of a tree of nodes, in the same shape; roots have no previous block."""
    blocks: dict[Node, Block] = {}
    todo = list(roots)
    for node in todo:
        blocks[node] = block = make_block(node)
        if node.parent is not None:
            blocks[node.parent].connect(block)
        todo += node.children
    return [blocks[node] for node in roots]


def make_block(node: Node) -> Block:
    """Return the block of one node."""
    message = node.message
    if message is None:
        block = Block(
            CLOCK,
            {"source": node.transaction.account} if node.transaction.is_tick_tock else {},
            [node],
            failed=node.transaction.aborted,
        )
    else:
        block = _make_message_block(node, message)
    if node.transaction.deploys:
        # The logs of a deploying transaction count as deployments too, as in TON Center.
        opcode = None if message is None else message.opcode
        _add_marker(DEPLOY, node, block, {"opcode": opcode})
        if not node.is_log:
            block.deployments = frozenset((node.transaction.account,))
    return block


def read_transfer(message: Message) -> tuple[str | None, bool]:
    """Return the comment of a TON transfer (None if empty), and whether it is encrypted."""
    try:
        body = message.body()
        comment, is_encrypted = read_comment(body)
    except IngestError:
        return None, message.opcode == ENCRYPTED_OPCODE
    is_empty = not comment and body.bits_left <= OPCODE_BITS and not body.refs_left
    return None if is_empty else comment, is_encrypted


def is_failed(node: Node, message: Message, *, aborted: bool, is_call: bool) -> bool:
    """Return whether a message counts as failed; ``aborted`` is that of its transaction.

    A transfer to an account without code, or without gas, succeeds unless it bounces. So does a
    call without value: it was an event, sent to an account that has no code to handle it.
    """
    if not aborted:
        return False
    if is_call:
        return not message.opcode or bool(message.value or message.extra_currencies)
    transaction = node.transaction
    return bool(message.bounce) or not (
        transaction.end_status == "uninit" or transaction.skip_reason == "no_gas"
    )


def _make_message_block(node: Node, message: Message) -> Block:
    """Return the block of a TON transfer, or of a call; if a relayer paid for it, one is inside."""
    is_call = not (message.opcode in _TRANSFER_OPCODES and message.source and message.destination)
    columns: Columns = {
        "value": message.value,
        "source": message.source,
        "destination": message.destination,
    }
    if message.extra_currencies:
        columns["value_extra_currencies"] = message.extra_currencies
    if is_call:
        columns |= {"opcode": telegram.read_opcode(message)} | _read_new_bounce(message)
    else:
        comment, is_encrypted = read_transfer(message)
        columns["ton_transfer_data"] = {"content": comment, "encrypted": is_encrypted}
    block = Block(
        CALL if is_call else TRANSFER,
        columns,
        [node],
        served=CURRENCY_TRANSFER if message.extra_currencies else None,
        failed=is_failed(node, message, aborted=node.transaction.aborted, is_call=is_call),
    )
    if is_call and telegram.is_gasless(node, columns["opcode"]):
        _add_marker(GASLESS, node, block, {})
    return block


def _read_new_bounce(message: Message) -> Columns:
    """Return why a message came back, as its new form (TEP-503) says; {} for any other message."""
    if message.opcode != NEW_BOUNCE_OPCODE:
        return {}
    try:
        body = message.arguments()
        return {EXTRA: {"bounced_by_phase": body.uint(8), "exit_code": body.signed(32)}}
    except IngestError:
        return {}


def _add_marker(kind: str, node: Node, block: Block, more: Columns) -> None:
    """Add a hidden block to that of a message."""
    columns = {name: block.columns.get(name) for name in ("value", "source", "destination")}
    marker = Block(kind, columns | more, [node], failed=node.transaction.aborted)
    marker.container = block
    block.children.append(marker)


_V5_OPCODE = 0x7369676E
_SEND_OPCODE = 0x0EC3C86D
_SIGNATURE_BITS = 512
_MODE_BITS = 8
_V3_BITS, _V4_BITS = 96, 104
_MAX_MESSAGES = 255
"""Maximum messages that one run of a contract can send. TVM: c5 holds at most 255 actions."""


def make_ghosts(trace: Trace, interfaces: Interfaces) -> list[ActionRow]:
    """Return the actions requested by a trace of one external message; [] if none."""
    transaction = trace.transactions[0]
    external = transaction.in_msg
    if len(trace.transactions) != 1 or external is None or transaction.out_msgs or external.source:
        return []
    try:
        messages = read_outgoing(external, transaction.account)
    except UNREADABLE:
        return []
    actions = []
    for number, message in enumerate(messages):
        if message.destination is not None:
            block = _make_ghost_block(message, transaction, interfaces)
            action = make_action(block, is_ghost=True)
            key = base64.b64encode(message.msg_hash) + str(number).encode()  # may occur often
            action.action_id = name_action(key, block.type)
            action.rule = "ghost"
            actions.append(action)
    return actions


def read_outgoing(external: Message, account: str) -> list[Message]:
    """Return the messages in an external message to a wallet; BodyError for any other."""
    body = external.content
    tree = body.tree
    decoder = MessageDecoder(tree, None)
    cells = list(_list_cells(tree, body.cell))
    return [_read_message(decoder, cell, account) for cell in cells[:_MAX_MESSAGES]]


def _list_cells(tree: CellTree, root: int) -> Iterator[int]:
    body = tree.slice(root)
    refs = tree.links[root]
    if telegram.find_request(body) is not None:
        yield from telegram.list_messages(body)
        return
    if body.bits_left >= _SIGNATURE_BITS and body.peek_uint(32) == _V5_OPCODE:
        body.skip(32 + 96)
        yield from _list_actions(tree, body.load_maybe_ref())
        return
    extra = body.bits_left - _SIGNATURE_BITS - _MODE_BITS * len(refs)
    if extra not in {_V3_BITS, _V4_BITS} or not refs:
        raise BodyError("the body is not one of a known wallet")
    yield from refs


def _list_actions(tree: CellTree, last: int | None) -> Iterator[int]:
    """Yield the messages of an OutList, last action first."""
    while last is not None and tree.bit_length(last):
        action = tree.slice(last)
        last = action.load_ref()
        if action.load_uint(32) == _SEND_OPCODE:
            yield action.load_ref()


def _read_message(decoder: MessageDecoder, cell: int, account: str) -> Message:
    row = decoder.decode_row(cell)
    opcode = row["opcode"]
    return Message(
        msg_hash=row["msg_hash"],
        source=account,
        destination=show_address(row["destination_workchain"], row["destination"]),
        value=row["value"],
        opcode=None if opcode is None else opcode & 0xFFFFFFFF,
        bounce=row["bounce"],
        boc=row["body"],
    )


def _make_ghost_block(message: Message, transaction: Transaction, interfaces: Interfaces) -> Block:
    """Return the block of a message that was not sent, as if it had arrived and been aborted."""
    node = Node(message, transaction, is_log=True)
    block = make_block(node)
    block.children.clear()
    if block.type == CALL and message.opcode == jetton.TRANSFER:
        with suppress(*UNREADABLE):
            block = jetton.make_ghost(block, interfaces)
    block.failed = is_failed(node, message, aborted=True, is_call=block.type != TRANSFER)
    return block
