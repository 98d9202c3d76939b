"""Codecs built from other codecs: references, Maybe, Either, lists and dictionaries.

TL-B: hm_edge, HmLabel, HashmapNode.
"""

from functools import cached_property

from tonlake.ingest.decode.cell.dictionary import read_label
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.body.codec import MAX_ITEMS, NOTHING, SOMETHING, Codec, Work, show_bits
from tonlake.ingest.derive.body.function import Function, ReadCell, refuse_rest
from tonlake.ingest.errors import BodyError

FIRST, SECOND = "first_from_either", "second_from_either"
CELL_REFERENCE = "cell_reference"


class WrappingCodec(Codec):
    """A codec that wraps another one."""

    def __init__(self, inner: Codec) -> None:
        self.inner = inner


class Reference(WrappingCodec):
    """``^T``: a value that fills a separate cell."""

    size = 0, 1

    def write(self, function: Function) -> str:
        """Read the value in the child cell, which must be consumed."""
        return f"{{{function.ref(f'{function.name(self.inner)}.read_cell')}}}"


def check_end(source: CellSlice) -> None:
    """Raise BodyError if anything is left of a cell."""
    if source.bits_left or source.refs_left:
        refuse_rest(source.cell)


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


class RepeatedValue(WrappingCodec):
    """``(count * T)``: values one after another in the same cell."""

    def __init__(self, inner: Codec, count: int) -> None:
        super().__init__(inner)
        self.count = count

    def load(self, source: CellSlice, work: Work) -> str:
        """Read the values as one list; one without bits counts as a cell."""
        items = []
        for _ in range(self.count):
            left = source.bits_left
            items.append(self.inner.read(source, work))
            if source.bits_left == left:
                work.visit()
        return f"[{','.join(items)}]"


class Chunks(RepeatedValue):
    """A list in a chain of cells: ``Maybe ^chunk``, where a chunk is ``Maybe ^next`` and items.

    Source: the bulk request of the Telegram wallet.
    """

    def load(self, source: CellSlice, work: Work) -> str:
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
        if len(items) != self.count:
            raise BodyError(f"the chunks have {len(items)} items, not {self.count}")
        return f"[{','.join(items)}]"


EMPTY, ROOT, EDGE = "hashmap_empty", "hashmap_root", "hashmap_edge"
LEAF, FORK = "hashmap_node_leaf", "hashmap_node_fork"
SHORT, LONG, SAME = "hashmap_label_short", "hashmap_label_long", "hashmap_label_same"
_NO_LABEL = f'{{"@type":"{SHORT}","len":"0","s":""}}'


class Hashmap(WrappingCodec):
    """A dictionary with at least one key, and values of ``inner``: a labelled leaf or fork."""

    def __init__(self, key_bits: int, inner: Codec) -> None:
        super().__init__(inner)
        self._key_bits = key_bits

    def write(self, function: Function) -> str:
        """Read the object of the edge."""
        function.add(f"width = {self._key_bits}")
        return self._write_node(function)

    @cached_property
    def read_cell(self) -> ReadCell:
        """What reads a dictionary that fills a cell, and bounds its entries."""
        return self._read_root

    def _read_root(self, tree: CellTree, cell: int, work: Work) -> str:
        around, work.entries_left = work.entries_left, MAX_ITEMS
        try:
            return self.read_node(tree, cell, work, self._key_bits)
        finally:
            work.entries_left = around

    @cached_property
    def read_node(self) -> ReadCell:
        """What reads an edge that fills a cell, if ``width`` bits of the key are left."""
        function = Function()
        return function.finish_cell(f"f'{self._write_node(function)}'", has_width=True)

    def _write_node(self, function: Function) -> str:
        name, label = function.local(), function.local()
        function.add("left -= 2", f"{label} = {_NO_LABEL!r}")
        with function.block("if value >> left & 3:"):
            read = function.name(_read_label)
            function.add(f"{label}, left, width = {read}(value, left, width)")
        with function.block("if width:"):
            function.add("width -= 1")
            read = f"{function.name(self)}.read_node"
            sides = [function.ref(read, "width") for _side in range(2)]
            node = f'"@type":"{FORK}","left":{{{sides[0]}}},"right":{{{sides[1]}}}'
            function.add(f"{name} = f'{{{{{node}}}}}'")
        with function.block("else:"):
            function.add("work.entries_left -= 1", "if work.entries_left < 0:")
            limit = f"a dictionary of the body has more than {MAX_ITEMS} entries"
            function.add(f" work.refuse({limit!r})")
            node = f'"@type":"{LEAF}","value":{self.inner.write(function)}'
            function.add(f"{name} = f'{{{{{node}}}}}'")
        return f'{{{{"@type":"{EDGE}","label":{{{label}}},"node":{{{name}}}}}}}'


class MaybeHashmap(WrappingCodec):
    """``HashmapE n X``: a bit, followed by a reference to the dictionary if it is one."""

    def __init__(self, key_bits: int, inner: Codec) -> None:
        super().__init__(inner)
        self._root = Reference(Hashmap(key_bits, inner))

    def write(self, function: Function) -> str:
        """Read the object of the empty dictionary or of the root."""
        name = function.local()
        with function.block(f"if {function.bit()}:"):
            root = self._root.write(function)
            function.add(f"""{name} = f'{{{{"@type":"{ROOT}","root":{root}}}}}'""")
        with function.block("else:"):
            function.add(f"""{name} = '{{"@type":"{EMPTY}"}}'""")
        return f"{{{name}}}"


def _read_label(value: int, left: int, width: int) -> tuple[str, int, int]:
    """Read HmLabel after its tag: hml_short$0, hml_long$10 or hml_same$11.

    It returns the object, and what is left of the cell and of the key.
    """
    label, below, rest = read_label(value, left + 2, width, 0)
    tag, length = value >> left & 3, width - below
    if tag == 3:  # noqa: PLR2004 - hml_same
        bit = value >> left - 1 & 1
        return f'{{"@type":"{SAME}","v":"{bit}","n":"{length}"}}', rest, below
    start_text = f'"{SHORT}","len"' if tag == 1 else f'"{LONG}","n"'
    text = f'{{"@type":{start_text}:"{length}","s":"{show_bits(label, length)}"}}'
    return text, rest, below
