"""Messages of a trace as the nodes of a tree.

A node is a message with the transaction that consumed it, a message without such a transaction (a
log), or a tick-tock transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.derive.action.model import Message, Trace, Transaction


class Node:
    """A node; ``transaction`` is the sender's if the message was not consumed."""

    __slots__ = (
        *("children", "depth", "is_log", "message", "parent", "start_lt", "start_utime"),
        "transaction",
    )

    def __init__(
        self, message: Message | None, transaction: Transaction, *, is_log: bool = False
    ) -> None:
        """Create a node without relations.

        ``start_lt`` and ``start_utime`` (Unix seconds) are of the message, else of the transaction.
        """
        self.message = message
        self.transaction = transaction
        self.is_log = is_log
        self.parent: Node | None = None
        self.children: list[Node] = []
        self.depth = 0
        self.start_lt, self.start_utime = transaction.lt, transaction.now
        if message is not None:
            if message.created_lt is not None:
                self.start_lt = message.created_lt
            if message.created_at is not None:
                self.start_utime = message.created_at

    @property
    def key(self) -> bytes:
        """Hash of the message, or of the transaction if there is no message."""
        return self.transaction.tx_hash if self.message is None else self.message.msg_hash


def build_nodes(trace: Trace) -> list[Node]:
    """Return the roots of a trace: one, or several if messages between them are lost."""
    nodes = [Node(each.in_msg, each) for each in trace.transactions]
    by_message = {
        (node.message.msg_hash, node.message.created_lt): node
        for node in nodes
        if node.message is not None and node.message.source is not None
    }
    for node in nodes:
        for message in node.transaction.out_msgs:
            child = by_message.get((message.msg_hash, message.created_lt))
            if child is None or child is node:
                child = Node(message, node.transaction, is_log=True)
            child.parent = node
            node.children.append(child)
        if len(node.children) > 1:
            node.children.sort(key=lambda each: each.start_lt)
    roots = [node for node in nodes if node.parent is None]
    _measure_depth(roots)
    return roots


def _measure_depth(roots: Sequence[Node]) -> None:
    level = list(roots)
    while level:
        for node in level:
            for child in node.children:
                child.depth = node.depth + 1
        level = [child for node in level for child in node.children]
