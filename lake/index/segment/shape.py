"""Records of a segment: each row is the number of its shape, and what the shape leaves open.

A shape has the constant columns of a row (NULL, flags, names, zeroes, very short bytes), and its
other columns are open: their values follow in the record. All numbers are written with seven bits a
byte, the least significant first; signed ones are folded (0, -1, 1, -2 ...). Bytes are a form, and
what it needs: 0 the own account, 1 the hash of the transaction before, 2 the hash of the in
message, 3 and 4 bytes of an earlier place of all records (32 of them, or their number first), 5 the
hash of the state before, 6 the literal bytes behind the bytes of an earlier place that the column
before has, and from 7 on literal bytes, that many more than 7. So that bytes which come again (both
ends of a message, bodies) are written once: hashes do not compress. A hash of few values is its
number among those of the segment, from 1 on; or 0, and bytes. A shard is its bits from the last to
the first as a number. An opcode that stands in its message's body is part of the shape, as its
place there.

A record is the state after, the state before, the transaction, and its messages,
their number first. A state is 0 where it is not known, 1 where it is that after the record before,
else its shape's number and 2. A complete trace is the row of its root, counted from 1, or 0 and the
root's hash; and its shape and what that leaves open.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tonlake.lake.index.segment.native import NATIVE
from tonlake.lake.index.segment.record import KINDS

_REMEMBERED = 4_000_000
"""Most values that are remembered, about 100 bytes of memory each; a million transactions have as
many. Then all are forgotten, and written again."""

_MOST_NUMBERED = 1 << 16
"""Most hashes that have numbers, as readers hold them all."""


def open_composer() -> Any:  # noqa: ANN401 - of the extension
    """Return what collects the rows of a segment, and encodes them, without any so far."""
    kinds = tuple((kind.columns, kind.codes) for kind in KINDS)
    return NATIVE.Composer(kinds, _REMEMBERED, _MOST_NUMBERED)


def encode_shapes(composer: Any) -> bytes:  # noqa: ANN401 - of the extension
    """Return the shapes of all rows, and the hashes that have numbers, as MessagePack.

    Of each shape its kind, codes and constants.
    """
    return msgspec.msgpack.encode(composer.shapes())
