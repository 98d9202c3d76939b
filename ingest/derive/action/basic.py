"""Basic blocks: how a single message or a tick-tock transaction is shown before rules apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.block import (
    CALL,
    CLOCK,
    CURRENCY_TRANSFER,
    DEPLOY,
    GASLESS,
    TRANSFER,
    Block,
    Columns,
)
from tonlake.ingest.derive.action.body import (
    ENCRYPTED_OPCODE,
    OPCODE_BITS,
    TEXT_OPCODE,
    read_comment,
)
from tonlake.ingest.derive.action.pattern import NEW_BOUNCE_OPCODE
from tonlake.ingest.derive.action.protocol import telegram
from tonlake.ingest.derive.action.row import EXTRA
from tonlake.ingest.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.derive.action.model import Message
    from tonlake.ingest.derive.action.node import Node

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
            [node],
            {"source": node.transaction.account} if node.transaction.is_tick_tock else {},
            failed=node.transaction.aborted,
        )
    elif message.opcode in _TRANSFER_OPCODES and message.source and message.destination:
        block = _make_transfer(node, message)
    else:
        block = _make_call(node, message)
    if node.transaction.deploys:
        # The logs of a deploying transaction count as deployments too, as in TON Center.
        block.children.append(_make_deploy(node, block))
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
    return message.bounce or not (
        transaction.end_status == "uninit" or transaction.skip_reason == "no_gas"
    )


def _make_transfer(node: Node, message: Message) -> Block:
    """Return the block of a TON transfer."""
    comment, is_encrypted = read_transfer(message)
    columns = _take_common(message) | {
        "ton_transfer_data": {"content": comment, "encrypted": is_encrypted}
    }
    return Block(
        TRANSFER,
        [node],
        columns,
        served=CURRENCY_TRANSFER if message.extra_currencies else None,
        failed=is_failed(node, message, aborted=node.transaction.aborted, is_call=False),
    )


def _make_call(node: Node, message: Message) -> Block:
    """Return the block of a call, with a hidden block inside if a relayer paid for it."""
    opcode = telegram.read_opcode(message)
    block = Block(
        CALL,
        [node],
        _take_common(message) | {"opcode": opcode} | _read_new_bounce(message),
        served=CURRENCY_TRANSFER if message.extra_currencies else None,
        failed=is_failed(node, message, aborted=node.transaction.aborted, is_call=True),
    )
    if telegram.is_gasless(node, opcode):
        columns = {name: block.columns[name] for name in ("value", "source", "destination")}
        marker = Block(GASLESS, [node], columns, failed=node.transaction.aborted)
        marker.container = block
        block.children.append(marker)
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


def _make_deploy(node: Node, block: Block) -> Block:
    """Return the hidden block of a deployment."""
    columns = {name: block.columns.get(name) for name in ("value", "source", "destination")}
    opcode = None if node.message is None else node.message.opcode
    deploy = Block(DEPLOY, [node], columns | {"opcode": opcode}, failed=node.transaction.aborted)
    deploy.container = block
    return deploy


def _take_common(message: Message) -> Columns:
    columns: Columns = {
        "value": message.value,
        "source": message.source,
        "destination": message.destination,
    }
    if message.extra_currencies:
        columns["value_extra_currencies"] = message.extra_currencies
    return columns
