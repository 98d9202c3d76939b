"""Records of a segment: each row is the number of its shape, and the values that the shape lacks.

A shape has the constant columns of a row (NULL, flags, names, zeroes, very short bytes). Its other
columns are open: their values follow in the record. All numbers are written with seven bits per
byte, the least significant first; signed ones are folded (0, -1, 1, -2 ...). Bytes are written as a
form and its arguments: 0 the row's own account; 1 the hash of the previous transaction; 2 the hash
of the inbound message; 3 and 4 bytes at an earlier offset among all records (32 bytes, or preceded
by their length); 5 the hash of the state before; 6 the literal bytes after those that the previous
column referred to at an earlier offset; from 7 on literal bytes, whose length is the excess over 7.
So repeated bytes (both ends of a message, bodies) are written once: hashes do not compress. A hash
with few values is its number among those of the segment, from 1 on, or 0 and bytes. A shard is its
bits in reverse order as a number. An opcode that occurs in its message's body is part of the shape,
as its position there.

A record is the state after, the state before, the transaction, and its messages, preceded by their
number. A state is 0 if unknown, 1 if it is the state after the previous record, else its shape's
number plus 2. A complete trace is the row of its root, counted from 1, or 0 and the root's hash;
then its shape and the open values.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tonlake.lake.index.segment.native import NATIVE
from tonlake.lake.index.segment.record import KINDS

_REMEMBERED = 4_000_000
"""Most values remembered, with about 100 bytes of memory each, as many as a million transactions
have. Then all are forgotten, and written again."""

_MAX_NUMBERED = 1 << 16
"""Most numbered hashes, as readers keep all of them in memory."""


def open_composer() -> Any:  # noqa: ANN401 - of the extension
    """Return an empty composer, which collects and encodes the rows of a segment."""
    kinds = tuple((kind.columns, kind.codes) for kind in KINDS)
    return NATIVE.Composer(kinds, _REMEMBERED, _MAX_NUMBERED)


def encode_shapes(composer: Any) -> bytes:  # noqa: ANN401 - of the extension
    """Return the shapes of all rows, and the numbered hashes, as MessagePack.

    A shape is its kind, codes and constants.
    """
    return msgspec.msgpack.encode(composer.shapes())
