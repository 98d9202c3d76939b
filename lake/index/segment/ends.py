"""Postings of messages: by hash, by opcode, by body.

Every message has up to two ends: the transaction that made it, and the one that consumed it.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.segment.postings import KEY_BYTES, cut_hash, pick_rows, write_postings
from tonlake.lake.index.segment.record import MESSAGE_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.lake.index.segment.file import SegmentWriter

NO_OPCODE = 1 << 32
NO_LT = (1 << 63) - 1
"""Creation of messages without one: after all others."""

_HASH, _NORM, _BODY, _OPCODE, _CREATED = (
    MESSAGE_COLUMNS.index(name)
    for name in ("msg_hash", "hash_norm", "body_hash", "opcode", "created_lt")
)


def opcode_key(opcode: int) -> int:
    """Return an opcode's key."""
    return opcode & 0xFFFFFFFF


class EndsBuilder:
    """Collects the ends of messages of one segment."""

    def __init__(self) -> None:
        """Begin with none."""
        self._row, self._place, self._created = array("I"), array("I"), array("q")
        self._hash, self._check = array("Q"), array("Q")
        self._body, self._opcode = array("Q"), array("Q")
        self._norm, self._norm_row = array("Q"), array("I")

    def add(self, row: int, place: int, message: Sequence[Any]) -> None:
        """Add one end: the message at a place of the transaction in a row."""
        msg_hash, norm = message[_HASH], message[_NORM]
        opcode, created = message[_OPCODE], message[_CREATED]
        self._row.append(row)
        self._place.append(place)
        self._hash.append(cut_hash(msg_hash))
        self._check.append(cut_hash(msg_hash[KEY_BYTES:]))
        self._created.append(NO_LT if created is None else created)
        self._body.append(cut_hash(message[_BODY]))
        self._opcode.append(NO_OPCODE if opcode is None else opcode_key(opcode))
        if norm is not None and norm != msg_hash:
            self._norm.append(cut_hash(norm))
            self._norm_row.append(row)

    def write(self, writer: SegmentWriter) -> None:
        """Write all postings.

        ``message``: ends by hash, and by normal form. ``opcode`` and ``body``: messages, each
        once, by creation.
        """
        both = {"key": self._hash + self._norm, "row": self._row + self._norm_row}
        write_postings(writer, "message", both, hashed=True)
        created = {
            "created": self._created,
            "hash": self._hash,
            "check": self._check,
            "row": self._row,
            "place": self._place,
        }
        once = ("created", "hash", "check")
        coded = pick_rows(
            {"key": self._opcode, **created}, [code != NO_OPCODE for code in self._opcode]
        )
        write_postings(writer, "opcode", coded, once)
        write_postings(
            writer, "body", {"key": self._body, **created}, once, hashed=True, apart=True
        )
