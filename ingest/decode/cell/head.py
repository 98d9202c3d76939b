"""One cell without its references: d1, d2 and the data, as trees keep it."""

from __future__ import annotations

from tonlake.ingest.decode.cell.exotic import KIND_NAMES
from tonlake.ingest.errors import BocError

_EXOTIC_BIT = 8
# Bits from the end tag of the data on, by the last byte.
_TAG_BITS = [(last & -last).bit_length() for last in range(256)]
_from_bytes = int.from_bytes


def read_bits(head: bytes) -> tuple[int, int]:
    """Return the data of an ordinary cell as one integer, and its number of bits."""
    if head[0] & _EXOTIC_BIT:
        name = KIND_NAMES[head[2]]
        raise BocError(f"a {name} cell stands where an ordinary cell is needed")
    if not head[1] & 1:
        return _from_bytes(head[2:], "big"), head[1] << 2
    tag = _TAG_BITS[head[-1]]
    return _from_bytes(head[2:], "big") >> tag, (len(head) - 2 << 3) - tag


def count_bits(head: bytes) -> int:
    """Return the number of data bits of a cell."""
    if not head[1] & 1:
        return head[1] << 2
    return (len(head) - 2 << 3) - _TAG_BITS[head[-1]]
