"""Codecs built from other codecs: references, Maybe, Either, lists and dictionaries.

TL-B: hm_edge, HmLabel, HashmapNode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.body.codec import NOTHING, SOMETHING, Codec, Object, Value, Work
from tonlake.ingest.derive.body.program import Op
from tonlake.ingest.derive.body.simple import load_bits
from tonlake.ingest.errors import BodyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.derive.body.program import Program

FIRST, SECOND = "first_from_either", "second_from_either"
CELL_REFERENCE = "cell_reference"


class WrappingCodec(Codec):
    """A codec that wraps another one."""

    def __init__(self, inner: Codec) -> None:
        """Wrap ``inner``."""
        self.inner = inner

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the node of the inner codec."""
        return (program.add(self.inner),)


class Reference(WrappingCodec):
    """``^T``: a value that fills a separate cell."""

    op = Op.REFERENCE

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the value in the child cell, which must be consumed."""
        child = source.tree.slice(source.load_ref())
        work.enter()
        value = self.inner.decode(child, work)
        work.leave()
        if child.bits_left or child.refs_left:
            raise BodyError(f"cell {child.cell} has data after its value")
        return value


class Wrapped(WrappingCodec):
    """``^T`` as an argument of a type: shown inside an object ``cell_reference``."""

    op = Op.WRAPPED

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the object."""
        return {CELL_REFERENCE: self.inner.decode(source, work)}


class Maybe(WrappingCodec):
    """``Maybe T``: a bit, followed by the value if it is one."""

    op = Op.MAYBE

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the object of nothing or of something."""
        if not source.load_bit():
            return {"@type": NOTHING}
        return {"@type": SOMETHING, "value": self.inner.decode(source, work)}


class Either(Codec):
    """``Either X Y``: a bit, followed by X if it is zero or by Y if it is one."""

    op = Op.EITHER

    def __init__(self, first: Codec, second: Codec) -> None:
        """Create the codec of two alternatives."""
        self._sides = {FIRST: first, SECOND: second}

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the object of the first or the second alternative."""
        name = SECOND if source.load_bit() else FIRST
        return {"@type": name, "value": self._sides[name].decode(source, work)}

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the nodes of both alternatives."""
        return [program.add(side) for side in self._sides.values()]


class Chunks(WrappingCodec):
    """A list in a chain of cells: ``Maybe ^chunk``, where a chunk is ``Maybe ^next`` and items.

    Source: the bulk request of the Telegram wallet.
    """

    op = Op.CHUNKS

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the items of all chunks as one list."""
        items: list[Value] = []
        following = source.load_maybe_ref()
        while following is not None:
            chunk = source.tree.slice(following)
            work.visit()
            following = chunk.load_maybe_ref()
            while chunk.bits_left or chunk.refs_left:
                work.enter()
                items.append(self.inner.decode(chunk, work))
                work.leave()
        return items


EMPTY, ROOT, EDGE = "hashmap_empty", "hashmap_root", "hashmap_edge"
LEAF, FORK = "hashmap_node_leaf", "hashmap_node_fork"
SHORT, LONG, SAME = "hashmap_label_short", "hashmap_label_long", "hashmap_label_same"


class Dictionary(WrappingCodec):
    """A codec of dictionaries; ``inner`` decodes the values."""

    def __init__(self, key_bits: int, inner: Codec) -> None:
        """Set the remaining width of the key; the children of a fork share one codec."""
        super().__init__(inner)
        self._key_bits = key_bits

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the width of the key, and the node of the values."""
        return (self._key_bits, program.add(self.inner))


class Hashmap(Dictionary):
    """A dictionary with at least one key: an edge with its label, and a leaf or a fork."""

    op = Op.HASHMAP

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


class MaybeHashmap(Dictionary):
    """``HashmapE n X``: a bit, followed by a reference to the dictionary if it is one."""

    op = Op.MAYBE_HASHMAP

    def __init__(self, key_bits: int, inner: Codec) -> None:
        """Create the codec for a width of keys and a type of values."""
        super().__init__(key_bits, inner)
        self._root = Reference(Hashmap(key_bits, inner))

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the object of the empty dictionary or of the root."""
        if not source.load_bit():
            return {"@type": EMPTY}
        return {"@type": ROOT, "root": self._root.decode(source, work)}


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
    """Raise BodyError if a label is longer than the rest of the key."""
    if not 0 <= length <= key_bits:
        raise BodyError(f"dictionary label of {length} bits where {key_bits} are left")
