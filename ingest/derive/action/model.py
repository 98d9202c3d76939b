"""Transactions and messages as the classifier reads them, whatever they were stored in.

Accounts are text, ``workchain:HEX`` in upper case; hashes are bytes; op-codes are unsigned.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.body import Body, read_body

if TYPE_CHECKING:
    from collections.abc import Sequence


class Message:
    """One message; ``source`` or ``destination`` is None outside the chain."""

    def __init__(  # noqa: PLR0913 - one for each field of a message
        self,
        *,
        msg_hash: bytes,
        source: str | None,
        destination: str | None,
        value: int | None = None,
        extra_currencies: dict[str, str] | None = None,
        opcode: int | None = None,
        created_lt: int | None = None,
        created_at: int | None = None,
        bounce: bool = False,
        boc: bytes | None = None,
        init_state: bytes | None = None,
    ) -> None:
        """Take the fields; ``boc`` is the body's bag of cells, None when it is lost.

        ``init_state`` is the bag of the StateInit. Of rows of the lake, only messages to sales and
        auctions have it here.
        """
        self.msg_hash = msg_hash
        self.source = source
        self.destination = destination
        self.value = value
        self.extra_currencies = extra_currencies or {}
        self.opcode = opcode
        self.created_lt = created_lt
        self.created_at = created_at
        self.bounce = bounce
        self.boc = boc
        self.init_state = init_state

    @cached_property
    def content(self) -> Body:
        """The body's first cell, from its first bit; raises BocError when it cannot be read."""
        return read_body(self.boc)

    def body(self) -> Body:
        """Return a reader at the start of the body, opcode included."""
        return self.content.copy()

    def arguments(self) -> Body:
        """Return a reader behind the opcode."""
        return self.body().skip(32)


class Transaction:
    """One transaction with its messages."""

    def __init__(  # noqa: PLR0913 - one for each field of a transaction
        self,
        *,
        tx_hash: bytes,
        account: str,
        lt: int,
        now: int,
        mc_seqno: int,
        orig_status: str,
        end_status: str,
        aborted: bool,
        is_tick_tock: bool,
        exit_code: int | None,
        skip_reason: str | None,
        in_msg: Message | None,
        out_msgs: Sequence[Message],
    ) -> None:
        """Take the fields."""
        self.tx_hash = tx_hash
        self.account = account
        self.lt = lt
        self.now = now
        self.mc_seqno = mc_seqno
        self.orig_status = orig_status
        self.end_status = end_status
        self.aborted = aborted
        self.is_tick_tock = is_tick_tock
        self.exit_code = exit_code
        self.skip_reason = skip_reason
        self.in_msg = in_msg
        self.out_msgs = out_msgs

    @property
    def deploys(self) -> bool:
        """Whether the account became active here."""
        return self.end_status == "active" and self.orig_status not in {"active", "frozen"}


class Trace:
    """A trace as it stands in ``traces``, with all its transactions."""

    def __init__(
        self,
        *,
        trace_id: bytes,
        external_hash: bytes | None,
        external_hash_norm: bytes | None = None,
        end_lt: int,
        end_utime: int,
        mc_seqno_end: int,
        state: str,
        transactions: Sequence[Transaction],
    ) -> None:
        """Take the fields."""
        self.trace_id = trace_id
        self.external_hash = external_hash
        self.external_hash_norm = external_hash_norm
        self.end_lt = end_lt
        self.end_utime = end_utime
        self.mc_seqno_end = mc_seqno_end
        self.state = state
        self.transactions = transactions
