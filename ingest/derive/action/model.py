"""Transactions and messages as the classifier reads them, independent of their storage.

Accounts are text, ``workchain:HEX`` in uppercase; hashes are bytes; opcodes are unsigned.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from tonlake.ingest.derive.action.body import Body, read_body


class Message(msgspec.Struct, kw_only=True, dict=True, eq=False):
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
    bounce: bool = False
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


class Transaction(msgspec.Struct, kw_only=True, eq=False):
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
