"""Transactions and messages as the classifier reads them, and the nodes of their tree.

Accounts are text, ``workchain:HEX`` in uppercase; hashes are bytes; opcodes are unsigned. A node is
a message with the transaction that consumed it, a message without such a transaction (a log), or a
tick-tock transaction.
"""

from functools import cached_property

import msgspec

from tonlake.ingest.derive.action.body import Body, read_body

_RECORDED = {
    "extra_currencies": "value_extra_currencies",
    "boc": "body_boc",
    "init_state": "init_state_boc",
    "tx_hash": "hash",
    "mc_seqno": "mc_block_seqno",
    "exit_code": "compute_exit_code",
    "skip_reason": "skipped_reason",
}
"""Names of fields in recorded traces."""


class Message(msgspec.Struct, kw_only=True, dict=True, eq=False, rename=_RECORDED):
    """A message; ``source`` or ``destination`` is None if it is outside the chain.

    ``boc`` is the bag of cells of the body, None if lost; ``init_state`` that of StateInit, which
    is loaded from the lake only for messages to sales and auctions.
    """

    msg_hash: bytes
    source: str | None
    destination: str | None
    value: int | None = None
    extra_currencies: dict[str, str] = {}
    opcode: int | None = None
    created_lt: int | None = None
    created_at: int | None = None
    bounce: bool | None = None
    boc: bytes | None = None
    init_state: bytes | None = None

    @cached_property
    def content(self) -> Body:
        """The first cell of the body, from its first bit; raises BocError if it is unreadable."""
        return read_body(self.boc)

    def body(self) -> Body:
        """Return a reader at the start of the body, opcode included."""
        return self.content.copy()

    def arguments(self) -> Body:
        """Return a reader after the opcode."""
        return self.body().skip(32)

    def fields(self) -> Body:
        """Return a reader after the opcode and the query id."""
        return self.body().skip(32 + 64)


class Transaction(msgspec.Struct, kw_only=True, eq=False, rename=_RECORDED):
    """A transaction with its messages."""

    tx_hash: bytes
    account: str
    lt: int
    now: int
    mc_seqno: int
    orig_status: str
    end_status: str
    aborted: bool
    is_tick_tock: bool
    exit_code: int | None
    skip_reason: str | None
    in_msg: Message | None
    out_msgs: list[Message]

    @property
    def deploys(self) -> bool:
        """Whether the transaction activated the account."""
        return self.end_status == "active" and self.orig_status not in {"active", "frozen"}

    @property
    def ran(self) -> bool:
        """Whether it was not aborted, and its code ended with exit code 0 or did not run."""
        return not self.aborted and self.exit_code in {0, None}


class Trace(msgspec.Struct, kw_only=True, eq=False):
    """A row of ``traces`` with all its transactions."""

    trace_id: bytes
    external_hash: bytes | None
    external_hash_norm: bytes | None = None
    end_lt: int
    end_utime: int
    mc_seqno_end: int
    state: str
    transactions: list[Transaction]


class Node:
    """A node; ``transaction`` is the sender's if the message was not consumed."""

    __slots__ = (
        *("children", "depth", "is_log", "message", "parent", "start_lt", "start_utime"),
        "transaction",
    )

    def __init__(
        self, message: Message | None, transaction: Transaction, *, is_log: bool = False
    ) -> None:
        """Create a node that starts (Unix seconds) with its message, else its transaction."""
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
    level = roots
    while level:
        for node in level:
            for child in node.children:
                child.depth = node.depth + 1
        level = [child for node in level for child in node.children]
    return roots
