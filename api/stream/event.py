"""One event, the place at which it stands in the stream, and how both are written."""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

from tonlake.api.request.params import INT64_MAX, ConversionError

TRANSACTIONS, STATES, JETTONS = "transactions", "account_state_change", "jettons_change"
TRACES, ACTIONS, INVALIDATED = "trace", "actions", "trace_invalidated"
UNDONE = "blocks_undone"
"""Masterchain blocks are no part of the chain any more; sent to every client."""

TYPES = (TRANSACTIONS, STATES, JETTONS, TRACES, ACTIONS)
"""Types that can be subscribed to, in the order in which those of one block are sent."""

FINALITIES = ("pending", "confirmed", "finalized")
PENDING, FINALIZED = FINALITIES.index("pending"), FINALITIES.index("finalized")

POSITIONS_PER_TYPE = 1 << 32
"""Positions of a block are numbered by type, so that they do not depend on the subscription."""

_CURSOR = re.compile(r"([0-9]{1,18}):([0-9]{1,18}):([0-9]{1,18})")


class Cursor(NamedTuple):
    """A place in the stream: commit, masterchain block in it, position in the block.

    As the id of an event it says that this event and all before it were sent.
    """

    commit: int
    mc_seqno: int = 0
    position: int = 0

    def __str__(self) -> str:
        """Return the text that clients give back as ``Last-Event-ID``."""
        return f"{self.commit}:{self.mc_seqno}:{self.position}"


def parse_cursor(text: str) -> Cursor:
    """Read the id of an event.

    Raises:
        ConversionError: it is none.
    """
    match = _CURSOR.fullmatch(text)
    if match is None or max(map(int, match.groups())) > INT64_MAX:
        raise ConversionError(text)
    return Cursor(*map(int, match.groups()))


class Event:
    """One event: what it is filtered by, and its text, which is the same for all clients."""

    def __init__(
        self,
        kind: str,
        body: bytes,
        *,
        cursor: Cursor | None = None,
        accounts: frozenset[str] = frozenset(),
        norm: bytes | None = None,
        finality: int = FINALIZED,
        action: tuple[str, frozenset[str]] | None = None,
    ) -> None:
        """Take the parts.

        Args:
            kind: One of ``TYPES``, or ``INVALIDATED``.
            body: JSON object.
            cursor: Its place; None for what no commit holds, which is never sent again.
            accounts: Raw addresses that it is about.
            norm: Normal hash of the message from outside that began it, where known.
            finality: Index in ``FINALITIES``.
            action: Type of an action, and the types around it.
        """
        self.kind = kind
        self.body = body
        self.cursor = cursor
        self.accounts = accounts
        self.norm = norm
        self.finality = finality
        self.action = action

    @cached_property
    def frame(self) -> bytes:
        """The event for server-sent events; without an id where it has no cursor."""
        start = b"" if self.cursor is None else b"id: %s\n" % str(self.cursor).encode()
        return b"%bdata: %b\n\n" % (start, self.body)

    @cached_property
    def message(self) -> str:
        """The event for a WebSocket: its id stands in the object."""
        if self.cursor is None:
            return self.body.decode()
        return f'{{"event_id":"{self.cursor}",{self.body[1:].decode()}'
