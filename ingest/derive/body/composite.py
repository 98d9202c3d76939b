"""Codecs built from other codecs: references, Maybe, Either, lists and dictionaries.

TL-B: hm_edge, HmLabel, HashmapNode.
"""

from itertools import count

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.body.codec import (
    LONG_TEXT,
    MAX_ITEMS,
    MAX_LEVELS,
    MAX_PAYLOADS,
    NOTHING,
    SOMETHING,
    Codec,
    Work,
    load_bits,
)
from tonlake.ingest.derive.body.function import Function
from tonlake.ingest.errors import BocError, BodyError

MAX_REPEATED = 1023
"""Maximum number of values in a cell."""

FIRST, SECOND = "first_from_either", "second_from_either"
CELL_REFERENCE = "cell_reference"

_NUMBERS = count()
"""Numbers of the types that fill cells, by which cells that were read are known."""
_LEVEL_SHIFT = MAX_PAYLOADS.bit_length()
_CELL_SHIFT = _LEVEL_SHIFT + MAX_LEVELS.bit_length()
_NUMBER_SHIFT = _CELL_SHIFT + 32


class WrappingCodec(Codec):
    """A codec that wraps another one."""

    def __init__(self, inner: Codec) -> None:
        """Wrap ``inner``."""
        self.inner = inner


class Reference(WrappingCodec):
    """``^T``: a value that fills a separate cell, which is read once however often it is shared."""

    size = 0, 1

    def __init__(self, inner: Codec) -> None:
        """Note the type of the value."""
        super().__init__(inner)
        self._number = next(_NUMBERS) << _NUMBER_SHIFT

    def write(self, function: Function) -> str:
        """Read the value in the child cell, which must be consumed."""
        return f"{{{function.ref(self.read_cell)}}}"

    def read_cell(self, tree: CellTree, cell: int, work: Work) -> str:
        """Read the value that fills a cell; it is read once in each depth."""
        level = work.level
        key = self._number | cell << _CELL_SHIFT | level << _LEVEL_SHIFT | work.payloads
        text = work.known.get(key)
        if isinstance(text, str):
            return work.repeat(text)
        if text is not None:
            raise text
        work.level = level + 1
        try:
            if level >= MAX_LEVELS:
                work.refuse(f"the body has more than {MAX_LEVELS} levels")
            work.visit()
            child = CellSlice(tree, cell)
            text = self.inner.read(child, work)
            if child.bits_left or child.ref < len(tree.links[cell]):
                check_end(child)
        except (BocError, BodyError) as error:
            work.known[key] = error
            raise
        finally:
            work.level = level
        if len(text) > LONG_TEXT:
            text = work.set_aside(text)
        work.known[key] = text
        return text


def check_end(source: CellSlice) -> None:
    """Raise BodyError if anything is left of a cell."""
    if source.bits_left or source.refs_left:
        raise BodyError(f"cell {source.cell} has data after its value")


class Wrapped(WrappingCodec):
    """``^T`` as an argument of a type: shown inside an object ``cell_reference``."""

    def write(self, function: Function) -> str:
        """Read the object."""
        return f'{{{{"{CELL_REFERENCE}":{self.inner.write(function)}}}}}'


class Maybe(WrappingCodec):
    """``Maybe T``: a bit, followed by the value if it is one."""

    def write(self, function: Function) -> str:
        """Read the object of nothing or of something."""
        return _write_choice(function, (NOTHING, None), (SOMETHING, self.inner))


class Either(Codec):
    """``Either X Y``: a bit, followed by X if it is zero or by Y if it is one."""

    def __init__(self, first: Codec, second: Codec) -> None:
        """Create the codec of two alternatives."""
        self._sides = {FIRST: first, SECOND: second}

    def write(self, function: Function) -> str:
        """Read the object of the first or the second alternative."""
        return _write_choice(function, *self._sides.items())


def _write_choice(function: Function, *sides: tuple[str, Codec | None]) -> str:
    """Read a bit, and the object of what follows it: of the first side if it is zero."""
    name, bit = function.local(), function.bit()
    for head, (type_name, codec) in ((f"if {bit}:", sides[1]), ("else:", sides[0])):
        with function.block(head):
            value = f',"value":{codec.write(function)}' if codec else ""
            function.add(f"""{name} = f'{{{{"@type":"{type_name}"{value}}}}}'""")
    return f"{{{name}}}"


class Chunks(WrappingCodec):
    """A list in a chain of cells: ``Maybe ^chunk``, where a chunk is ``Maybe ^next`` and items.

    Source: the bulk request of the Telegram wallet.
    """

    def decode_items(self, source: CellSlice, work: Work, count: int) -> list[str]:
        """Read the items of all chunks; raise BodyError if there are not ``count``."""
        items: list[str] = []
        following = source.load_maybe_ref()
        while following is not None:
            chunk = source.tree.slice(following)
            work.visit()
            following = chunk.load_maybe_ref()
            while chunk.bits_left or chunk.refs_left:
                work.visit()
                items.append(self.inner.read(chunk, work))
        if len(items) != count:
            raise BodyError(f"the chunks have {len(items)} items, not {count}")
        return items


class Repeat(WrappingCodec):
    """``(count * T)``: values one after another in the same cell.

    ``count`` is None if an earlier field has the number.
    """

    def __init__(self, count: int | None, inner: Codec) -> None:
        """Set the number of values."""
        super().__init__(inner)
        self._count = count

    def load(self, source: CellSlice, work: Work) -> str:
        """Read the values as one list."""
        return f"[{','.join(self.decode_items(source, work, self._count or 0))}]"

    def decode_items(self, source: CellSlice, work: Work, count: int) -> list[str]:
        """Read ``count`` values; raise BodyError if a cell cannot hold them."""
        if count > MAX_REPEATED:
            raise BodyError(f"{count} values where a cell has at most {MAX_REPEATED} bits")
        return [self.inner.read(source, work) for _ in range(count)]


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

    def load(self, source: CellSlice, work: Work) -> str:
        """Read the object of the edge."""
        label, length = _load_label(source, self._key_bits)
        left = self._key_bits - length
        if not left:
            work.entries_left -= 1
            if work.entries_left < 0:
                work.refuse(f"a dictionary of the body has more than {MAX_ITEMS} entries")
            value = self.inner.read(source, work)
            return f'{_EDGE}{label},"node":{{"@type":"{LEAF}","value":{value}}}}}'
        child = self._children.get(left) or self.below(left)
        sides = [child.read_cell(source.tree, source.load_ref(), work) for _side in range(2)]
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

    def __init__(self, key_bits: int, inner: Codec) -> None:
        """Create the codec for a width of keys and a type of values."""
        super().__init__(inner)
        self._root = Reference(Hashmap(key_bits, inner))

    def write(self, function: Function) -> str:
        """Read the object of the empty dictionary or of the root."""
        name = function.local()
        with function.block(f"if {function.bit()}:"):
            root = function.ref(self._read_root)
            function.add(f"""{name} = f'{{{{"@type":"{ROOT}","root":{{{root}}}}}}}'""")
        with function.block("else:"):
            function.add(f"""{name} = '{{"@type":"{EMPTY}"}}'""")
        return f"{{{name}}}"

    def _read_root(self, tree: CellTree, cell: int, work: Work) -> str:
        around, work.entries_left = work.entries_left, MAX_ITEMS
        try:
            return self._root.read_cell(tree, cell, work)
        finally:
            work.entries_left = around


def _load_label(source: CellSlice, key_bits: int) -> tuple[str, int]:
    """Read HmLabel: hml_short$0, hml_long$10 or hml_same$11; return its object and length."""
    tag = source.load_uint(2)
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
