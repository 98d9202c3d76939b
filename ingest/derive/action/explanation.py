"""Shows a trace as a tree of its messages, each with the rules that claimed it."""

from collections.abc import Iterator, Sequence

from tonlake.ingest.derive.action.classifier import find_blocks
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.model import Message, Node, Trace, build_nodes
from tonlake.ingest.derive.action.protocol.telegram import is_gasless, read_opcode
from tonlake.ingest.derive.action.rule import MARKERS, Block
from tonlake.ingest.derive.body.body import decode_message_body, name_opcode, name_request
from tonlake.ingest.derive.body.scheme import MIN_HASHED

Key = tuple[bytes, int, bool]
Claims = dict[Key, list[Block]]
"""Blocks around each node, innermost first."""

_ACCOUNT_LETTERS = 10


def explain(trace: Trace, interfaces: Interfaces) -> Iterator[str]:
    """Yield the lines of a tree.

    Each line shows a message: its opcode with its name, source and destination, its value, and
    after an arrow the actions that it is part of, innermost first, with their rules.
    """
    roots = build_nodes(trace)
    claims: Claims = {}
    for block in find_blocks(trace, interfaces):
        _claim(block, claims)
    todo = [(root, 0) for root in reversed(roots)]
    while todo:
        node, depth = todo.pop()
        yield "  " * depth + _describe(node, claims.get(_key(node), ()))
        todo += [(child, depth + 1) for child in reversed(node.children)]


def _claim(top: Block, claims: Claims) -> None:
    todo: list[tuple[Block, tuple[Block, ...]]] = [(top, ())]
    while todo:
        block, around = todo.pop()
        if block.type in MARKERS:
            continue
        inside = (block, *around)
        for node in block.nodes:
            claims.setdefault(_key(node), []).extend(inside)
        todo += [(child, inside) for child in block.children]


def _key(node: Node) -> Key:
    return node.key, node.start_lt, node.is_log


def _describe(node: Node, claims: Sequence[Block]) -> str:
    message, transaction = node.message, node.transaction
    parts = [_name(message)]
    if message is not None:
        parts.append(f"{_short(message.source)} -> {_short(message.destination)}")
        if message.value:
            parts.append(f"{message.value / 1e9:g} TON")
        if is_gasless(node, read_opcode(message)):
            parts.append("gasless")
    if node.is_log:
        parts.append("log")
    elif transaction.aborted:
        code = transaction.skip_reason or transaction.exit_code
        parts.append(f"aborted ({code})")
    if transaction.deploys and not node.is_log:
        parts.append("deploys")
    shown = [
        f"{block.served}{' failed' * block.failed}{' broken' * block.is_broken}"
        + (f" [{block.rule}]" if block.rule else "")
        for block in claims
    ]
    return "  ".join(parts) + (f"  => {' < '.join(shown)}" if shown else "")


def _name(message: Message | None) -> str:
    if message is None:
        return "tick_tock"
    opcode = read_opcode(message)
    if opcode is None:
        return "(no opcode)"
    name = name_opcode(opcode) if opcode == message.opcode else name_request(opcode)
    if opcode < MIN_HASHED and message.boc is not None:
        name = decode_message_body(message.boc, external_in=message.source is None).own_name
    return f"{opcode:08x}" + (f" {name}" if name else "")


def _short(account: str | None) -> str:
    return "outside" if account is None else account[:_ACCOUNT_LETTERS]
