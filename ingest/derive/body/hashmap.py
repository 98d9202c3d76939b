"""``Hashmap n X`` and ``HashmapE n X``, shown node by node. TL-B: hm_edge, HmLabel, HashmapNode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.body.bits import load_bits
from tonlake.ingest.derive.body.codec import Codec, Object, Value, Work
from tonlake.ingest.derive.body.composite import Reference
from tonlake.ingest.derive.body.program import Op
from tonlake.ingest.errors import BodyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.derive.body.program import Program

EMPTY, ROOT, EDGE = "hashmap_empty", "hashmap_root", "hashmap_edge"
LEAF, FORK = "hashmap_node_leaf", "hashmap_node_fork"
SHORT, LONG, SAME = "hashmap_label_short", "hashmap_label_long", "hashmap_label_same"


class Hashmap(Codec):
    """A dictionary with at least one key: an edge with its label, and a leaf or a fork."""

    op = Op.HASHMAP

    def __init__(self, key_bits: int, inner: Codec) -> None:
        """Make the codec for what is left of the key; the children of a fork share it."""
        self._key_bits = key_bits
        self.inner = inner

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the object of the edge."""
        label, length = _load_label(source, self._key_bits)
        left = self._key_bits - length
        if not left:
            node: Object = {"@type": LEAF, "value": self.inner.decode(source, work)}
        else:
            child = Reference(Hashmap(left - 1, self.inner))
            node = {"@type": FORK, "left": child.decode(source, work)}
            node["right"] = child.decode(source, work)
        return {"@type": EDGE, "label": label, "node": node}

    def arguments(self, program: Program) -> Sequence[int]:
        """Return width of the key, and the node of the values."""
        return (self._key_bits, program.add(self.inner))


class MaybeHashmap(Codec):
    """``HashmapE n X``: a bit, and the dictionary in a cell of its own after a one."""

    op = Op.MAYBE_HASHMAP

    def __init__(self, key_bits: int, inner: Codec) -> None:
        """Make the codec of one width of key and one type of value."""
        self._key_bits = key_bits
        self.inner = inner
        self._root = Reference(Hashmap(key_bits, inner))

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the object of the empty dictionary or of the root."""
        if not source.load_bit():
            return {"@type": EMPTY}
        return {"@type": ROOT, "root": self._root.decode(source, work)}

    def arguments(self, program: Program) -> Sequence[int]:
        """Return width of the key, and the node of the values."""
        return (self._key_bits, program.add(self.inner))


def _load_label(source: CellSlice, key_bits: int) -> tuple[Object, int]:
    """Read HmLabel: hml_short$0, hml_long$10 or hml_same$11; return its object and length."""
    if not source.load_bit():
        length = 0
        while source.load_bit():
            length += 1
        _check_label(length, key_bits)
        return {"@type": SHORT, "len": str(length), "s": load_bits(source, length)}, length
    if not source.load_bit():
        length = source.load_uint(key_bits.bit_length())
        _check_label(length, key_bits)
        return {"@type": LONG, "n": str(length), "s": load_bits(source, length)}, length
    bit = str(source.load_uint(1))
    length = source.load_uint(key_bits.bit_length())
    _check_label(length, key_bits)
    return {"@type": SAME, "v": bit, "n": str(length)}, length


def _check_label(length: int, key_bits: int) -> None:
    """Refuse a label that is longer than what is left of the key."""
    if not 0 <= length <= key_bits:
        raise BodyError(f"dictionary label of {length} bits where {key_bits} are left")
