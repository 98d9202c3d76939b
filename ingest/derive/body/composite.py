"""Codecs built from other codecs: references, Maybe, Either, lists and dictionaries.

TL-B: hm_edge, HmLabel, HashmapNode.
"""

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.body.codec import (
    MAX_ITEMS,
    MAX_LEVELS,
    MAX_TEXT,
    NOTHING,
    SOMETHING,
    Codec,
    Work,
    load_bits,
)
from tonlake.ingest.errors import BocError, BodyError

MAX_REPEATED = 1023
"""Maximum number of values in a cell."""

FIRST, SECOND = "first_from_either", "second_from_either"
CELL_REFERENCE = "cell_reference"


class WrappingCodec(Codec):
    """A codec that wraps another one."""

    def __init__(self, inner: Codec) -> None:
        """Wrap ``inner``."""
        self.inner = inner


class Reference(WrappingCodec):
    """``^T``: a value that fills a separate cell, which is read once however often it is shared."""

    size = 0, 1

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the value in the child cell, which must be consumed."""
        tree = source.tree
        links = tree.links[source.cell]
        if source.ref == len(links):
            source.load_ref()  # refused
        cell = links[source.ref]
        source.ref += 1
        level = work.level
        key = self, cell, level, work.payloads
        text = work.known.get(key)
        if text is None:
            work.level = level + 1
            try:
                text = self._read(tree, cell, work)
            except (BocError, BodyError) as error:
                work.known[key] = error
                raise
            finally:
                work.level = level
            work.known[key] = text
        elif not isinstance(text, str):
            raise text
        work.text_left -= len(text)
        if work.text_left < 0:
            work.refuse(f"shared cells repeat more than {MAX_TEXT:,} characters")
        return text

    def _read(self, tree: CellTree, cell: int, work: Work) -> str:
        if work.level > MAX_LEVELS:
            work.refuse(f"the body has more than {MAX_LEVELS} levels")
        work.visit()
        child = CellSlice(tree, cell)
        text = self.inner.decode(child, work)
        if child.bits_left or child.ref < len(tree.links[cell]):
            check_end(child)
        return text


def check_end(source: CellSlice) -> None:
    """Raise BodyError if anything is left of a cell."""
    if source.bits_left or source.refs_left:
        raise BodyError(f"cell {source.cell} has data after its value")


class Wrapped(WrappingCodec):
    """``^T`` as an argument of a type: shown inside an object ``cell_reference``."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the object."""
        return f'{{"{CELL_REFERENCE}":{self.inner.decode(source, work)}}}'


class Maybe(WrappingCodec):
    """``Maybe T``: a bit, followed by the value if it is one."""

    zeros = 1, f'{{"@type":"{NOTHING}"}}'

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the object of nothing or of something."""
        left = source.bits_left - 1
        if left < 0:
            source.load_bit()  # refused
        source.bits_left = left
        if not source.value >> left & 1:
            return f'{{"@type":"{NOTHING}"}}'
        return f'{{"@type":"{SOMETHING}","value":{self.inner.decode(source, work)}}}'


class Either(Codec):
    """``Either X Y``: a bit, followed by X if it is zero or by Y if it is one."""

    def __init__(self, first: Codec, second: Codec) -> None:
        """Create the codec of two alternatives."""
        self._sides = {FIRST: first, SECOND: second}

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the object of the first or the second alternative."""
        name = SECOND if source.load_bit() else FIRST
        return f'{{"@type":"{name}","value":{self._sides[name].decode(source, work)}}}'


class Chunks(WrappingCodec):
    """A list in a chain of cells: ``Maybe ^chunk``, where a chunk is ``Maybe ^next`` and items.

    Source: the bulk request of the Telegram wallet.
    """

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the items of all chunks as one list."""
        return f"[{','.join(self.decode_items(source, work))}]"

    def decode_items(self, source: CellSlice, work: Work) -> list[str]:
        """Read the items of all chunks."""
        items: list[str] = []
        following = source.load_maybe_ref()
        while following is not None:
            chunk = source.tree.slice(following)
            work.visit()
            following = chunk.load_maybe_ref()
            while chunk.bits_left or chunk.refs_left:
                work.visit()
                items.append(self.inner.decode(chunk, work))
        return items


class Repeat(WrappingCodec):
    """``(count * T)``: values one after another in the same cell.

    ``count`` is None if an earlier field has the number.
    """

    def __init__(self, count: int | None, inner: Codec) -> None:
        """Set the number of values."""
        super().__init__(inner)
        self._count = count

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the values as one list."""
        return f"[{','.join(self.decode_items(source, work, self._count or 0))}]"

    def decode_items(self, source: CellSlice, work: Work, count: int) -> list[str]:
        """Read ``count`` values; raise BodyError if a cell cannot hold them."""
        if count > MAX_REPEATED:
            raise BodyError(f"{count} values where a cell has at most {MAX_REPEATED} bits")
        return [self.inner.decode(source, work) for _ in range(count)]


EMPTY, ROOT, EDGE = "hashmap_empty", "hashmap_root", "hashmap_edge"
LEAF, FORK = "hashmap_node_leaf", "hashmap_node_fork"
SHORT, LONG, SAME = "hashmap_label_short", "hashmap_label_long", "hashmap_label_same"
_EDGE = f'{{"@type":"{EDGE}","label":'
_NO_LABEL = f'{{"@type":"{SHORT}","len":"0","s":""}}', 0


class Hashmap(WrappingCodec):
    """A dictionary with at least one key: an edge with its label, and a leaf or a fork.

    ``inner`` decodes the values.
    """

    def __init__(self, key_bits: int, inner: Codec) -> None:
        """Set the width of the key; the forks that leave equally many bits share one codec."""
        super().__init__(inner)
        self._key_bits = key_bits
        self._children: dict[int, Reference] = {}

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the object of the edge."""
        label, length = _load_label(source, self._key_bits)
        left = self._key_bits - length
        if not left:
            work.entries_left -= 1
            if work.entries_left < 0:
                work.refuse(f"a dictionary of the body has more than {MAX_ITEMS} entries")
            value = self.inner.decode(source, work)
            return f'{_EDGE}{label},"node":{{"@type":"{LEAF}","value":{value}}}}}'
        child = self._children.get(left) or self.below(left)
        sides = child.decode(source, work), child.decode(source, work)
        return f'{_EDGE}{label},"node":{{"@type":"{FORK}","left":{sides[0]},"right":{sides[1]}}}}}'

    def below(self, left: int) -> Reference:
        """Return the codec of the two children of a fork, where ``left`` bits of the key are."""
        if left not in self._children:
            child = Hashmap(left - 1, self.inner)
            child._children = self._children
            self._children[left] = Reference(child)
        return self._children[left]


class MaybeHashmap(WrappingCodec):
    """``HashmapE n X``: a bit, followed by a reference to the dictionary if it is one."""

    zeros = 1, f'{{"@type":"{EMPTY}"}}'

    def __init__(self, key_bits: int, inner: Codec) -> None:
        """Create the codec for a width of keys and a type of values."""
        super().__init__(inner)
        self._root = Reference(Hashmap(key_bits, inner))

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the object of the empty dictionary or of the root."""
        if not source.load_bit():
            return f'{{"@type":"{EMPTY}"}}'
        around, work.entries_left = work.entries_left, MAX_ITEMS
        try:
            return f'{{"@type":"{ROOT}","root":{self._root.decode(source, work)}}}'
        finally:
            work.entries_left = around


def _load_label(source: CellSlice, key_bits: int) -> tuple[str, int]:
    """Read HmLabel: hml_short$0, hml_long$10 or hml_same$11; return its object and length."""
    left = source.bits_left - 2
    if left < 0:
        source.load_uint(2)  # refused
    source.bits_left = left
    tag = source.value >> left & 3
    if not tag:
        return _NO_LABEL
    if tag == 1:  # the second bit belongs to the length, in unary
        length = 1
        while source.load_bit():
            length += 1
    else:
        bit = source.load_uint(1) if tag == 3 else 0  # noqa: PLR2004 - hml_same
        length = source.load_uint(key_bits.bit_length())
    if length > key_bits:
        raise BodyError(f"dictionary label of {length} bits where {key_bits} are left")
    if tag == 3:  # noqa: PLR2004 - hml_same
        return f'{{"@type":"{SAME}","v":"{bit}","n":"{length}"}}', length
    bits = load_bits(source, length)
    if tag == 1:
        return f'{{"@type":"{SHORT}","len":"{length}","s":"{bits}"}}', length
    return f'{{"@type":"{LONG}","n":"{length}","s":"{bits}"}}', length
