"""Disassembles contract code into TVM instructions, with operands as Fift shows them.

The code may be hostile: bits that are not an instruction are shown as bits, and the length and
nesting of the listing are bounded, because a few cells can encode endless code.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.tree import KIND_NAMES, ORDINARY
from tonlake.ingest.derive.tvm.call import method_id
from tonlake.ingest.derive.tvm.machine.code import WINDOW_BITS, find_instruction
from tonlake.ingest.errors import BocError, CellUnderflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from tonlake.ingest.decode.cell.tree import CellTree

    Block: TypeAlias = Callable[[int], None]
    """Writes the block below an instruction, indented to a level."""


_NUMBERS = re.compile(r"[+-]?[0-9]+")


class Code(msgspec.Struct):
    """The bits and references still to be read."""

    value: int
    left: int
    refs: list[int]

    def take(self, bits: int) -> int:
        """Read an unsigned ``bits``-bit number; raise CellUnderflow if fewer bits are left."""
        if bits > self.left:
            raise CellUnderflow(f"{bits} bits needed, {self.left} left")
        self.left -= bits
        return self.value >> self.left & (1 << bits) - 1

    def take_signed(self, bits: int) -> int:
        """Read a ``bits``-bit number in two's complement."""
        value = self.take(bits)
        return value - (value >> bits - 1 << bits)

    def take_refs(self, count: int) -> list[int]:
        """Read ``count`` references; raise CellUnderflow if fewer are left."""
        if count > len(self.refs):
            raise CellUnderflow(f"{count} references needed, {len(self.refs)} left")
        taken, self.refs = self.refs[:count], self.refs[count:]
        return taken

    def peek(self) -> int:
        """Return the next ``WINDOW_BITS`` bits without consuming them."""
        if self.left >= WINDOW_BITS:
            return self.value >> self.left - WINDOW_BITS & (1 << WINDOW_BITS) - 1
        return (self.value & (1 << self.left) - 1) << WINDOW_BITS - self.left


_NIBBLES = {"tiny": 5, "most": 1}
"""Forms of four bits whose greatest values stand for the negative ones down to minus these."""


def write_bits(value: int, bits: int) -> str:
    """Format bits as Fift does: hex digits, then a tag bit and _ if the last digit is partial."""
    if not bits:
        return "x{}"
    value &= (1 << bits) - 1
    if rest := bits % 4:
        value, bits = (value << 1 | 1) << 3 - rest, bits + 4 - rest
        return f"x{{{value:0{bits // 4}X}_}}"
    return f"x{{{value:0{bits // 4}X}}}"


def read_operand(form: str, code: Code) -> str:
    """Return an operand that is a number or a register; ``form`` is a word of the table.

    Raises:
        CellUnderflow: the code ends inside the operand.
    """
    if form.startswith("="):
        return form[1:]
    if form in _NIBBLES:
        shift = _NIBBLES[form]
        return str((code.take(4) + shift) % 16 - shift)
    if form == "words":
        return str((code.take(3) + 1) * 32)
    if form == "long":
        return str(code.take_signed(8 * code.take(5) + 19))
    kind = form[0]
    bits, *more = map(int, _NUMBERS.findall(form))
    value = (code.take_signed if kind == "i" else code.take)(bits) + sum(more)
    if kind not in "sc":
        return str(value)
    return f"{kind}{value}" if value >= 0 else f"{kind}({value})"


MAX_CHARACTERS = 300_000
"""Maximum length of a listing; the largest contracts in wide use need about 150,000."""

MAX_LEVELS = 48
"""Maximum nesting of code in code; deeper code is not shown."""

METHOD_BITS = 19
"""Key length of the method dictionary in code compiled from FunC, Tact or Tolk."""

_ENTRIES = {0: "recv_internal", -1: "recv_external", -2: "run_ticktock", -3: "split_prepare"}
_INDENT = "  "


class Stopped(Exception):
    """The listing has reached its maximum length."""


def disassemble(
    boc: bytes, names: Iterable[str] = (), libraries: Mapping[bytes, bytes] | None = None
) -> str:
    """Return the instructions in a bag of cells, one per line.

    ``names`` are candidate names of get-methods, ``libraries`` bags of cells by hash.

    Raises:
        BocError: ``boc`` is not a bag of cells.
    """
    methods = _ENTRIES | {method_id(name): name for name in names}
    listing = _Listing(parse_boc(boc), methods, libraries or {})
    try:
        listing.write_cell(listing.tree.roots[0], 0)
    except Stopped:
        listing.lines.append(f"… the listing ends after {MAX_CHARACTERS:,} characters")
    return "\n".join(listing.lines)


class _Listing:
    """A listing in progress: the lines so far and the cells they come from."""

    def __init__(
        self, tree: CellTree, methods: Mapping[int, str], libraries: Mapping[bytes, bytes]
    ) -> None:
        self.tree = tree
        self.methods = methods
        self.libraries = libraries
        self.lines: list[str] = []
        self.room = MAX_CHARACTERS

    def write(self, level: int, text: str) -> None:
        line = _INDENT * level + text
        self.room -= len(line) + 1
        if self.room < 0:
            raise Stopped
        self.lines.append(line)

    def write_cell(self, cell: int, level: int) -> None:
        """Write the code in a cell."""
        if self.tree.kind(cell) == ORDINARY:
            self.write_code(self.open(cell), level)
            return
        self.write(level, self.show_data(cell))
        boc = self.libraries.get(self.tree.payload(cell)[1:])
        if boc and level < MAX_LEVELS:
            try:
                library = parse_boc(boc)
            except BocError:
                self.write(level + 1, "… the library is not a bag of cells")
                return
            outer, self.tree = self.tree, library
            self.write_cell(library.roots[0], level + 1)
            self.tree = outer

    def open(self, cell: int) -> Code:
        """Return a reader of an ordinary cell."""
        return Code(*self.tree.bits(cell), list(self.tree.refs(cell)))

    def write_code(self, code: Code, level: int) -> None:
        """Write instructions up to the end of the code or the first unknown one."""
        if level > MAX_LEVELS:
            self.write(level, "… nested deeper")
            return
        while code.left or code.refs:
            if not code.left:
                # When the bits end, the TVM continues in the first reference (implicit jump).
                following, *unused = code.refs
                self.write_data(unused, level)
                if self.tree.kind(following) != ORDINARY:
                    self.write_cell(following, level)
                    return
                code = self.open(following)
                continue
            start = code.left, code.refs
            try:
                text, blocks = self._read_instruction(code)
            except (CellUnderflow, BocError):
                left, refs = start
                self.write(level, f"… no instruction: {write_bits(code.value, left)}")
                self.write_data(refs, level + 1)
                return
            self._write_blocks(text, blocks, level)

    def _read_instruction(self, code: Code) -> tuple[str, list[Block]]:
        """Return an instruction with its operands, and writers of the blocks below it."""
        found = find_instruction(code.peek())
        if found is None:
            raise CellUnderflow("unknown instruction")
        code.take(found.opcode_bits)
        texts, blocks = [found.name], []
        for form in found.operands:
            kind, *sizes = form.split(":")
            if kind in _LONG_FORMS:
                text, block = _LONG_FORMS[kind](self, code, [int(size) for size in sizes])
                blocks += [block] if block else []
            elif kind == "dict":
                (root,) = code.take_refs(1)
                text = ""
                blocks.append(partial(self._write_map, root, int(texts[-1])))
            else:
                text = read_operand(form, code)
            texts += [text] if text else []
        return " ".join(texts), blocks

    def _write_blocks(self, text: str, blocks: list[Block], level: int) -> None:
        for block in blocks:
            self.write(level, f"{text} {{")
            block(level + 1)
            text = "}"
        self.write(level, text)

    def read_code(self, code: Code, sizes: list[int]) -> tuple[str, Block]:
        """Read an inline continuation."""
        refs, octets = map(code.take, sizes)
        bits = 8 * octets
        return "", partial(self.write_code, Code(code.take(bits), bits, code.take_refs(refs)))

    def read_slice(self, code: Code, sizes: list[int]) -> tuple[str, Block | None]:
        """Read an inline slice without its completion tag: the last 1 and the zeros after it."""
        refs_bits, more_refs, size_bits, more_bits = sizes
        count = code.take(refs_bits) + more_refs
        bits = 8 * code.take(size_bits) + more_bits
        value, refs = code.take(bits), code.take_refs(count)
        tag = (value & -value).bit_length() or bits
        block = partial(self.write_data, refs) if refs else None
        return write_bits(value >> tag, bits - tag), block

    def read_ref(self, code: Code, _sizes: list[int]) -> tuple[str, Block]:
        """Read a continuation in a reference."""
        return "", partial(self.write_cell, *code.take_refs(1))

    def read_cell(self, code: Code, _sizes: list[int]) -> tuple[str, Block | None]:
        """Read a cell in a reference."""
        (cell,) = code.take_refs(1)
        refs = self.tree.refs(cell)
        return self.show_data(cell), partial(self.write_data, refs) if refs else None

    def read_text(self, code: Code, _sizes: list[int]) -> tuple[str, None]:
        """Read a text for debugging."""
        size = code.take(4) + 1
        return ascii(code.take(8 * size).to_bytes(size).decode("latin-1")), None

    def show_data(self, cell: int) -> str:
        """Return the data of a cell; kind and hash of an exotic one."""
        kind = self.tree.kind(cell)
        if kind == ORDINARY:
            return write_bits(*self.tree.bits(cell))
        found = self.tree.payload(cell)[1:].hex()
        return f"… {KIND_NAMES[kind]} {found}"

    def write_data(self, cells: Iterable[int], level: int) -> None:
        """Write the data of cells and their descendants."""
        for cell in cells:
            self.write(level, self.show_data(cell))
            if level < MAX_LEVELS:
                self.write_data(self.tree.refs(cell), level + 1)

    def _write_map(self, root: int, key_bits: int, level: int) -> None:
        """Write the entries of a dictionary: methods or data."""
        try:
            for key, value in iter_hashmap(self.tree, root, key_bits):
                entry = Code(*value.bits(), list(self.tree.refs(value.cell)))
                self._write_entry(key, key_bits, entry, level)
        except BocError as error:
            self.write(level, f"… damaged: {error}")

    def _write_entry(self, key: int, key_bits: int, entry: Code, level: int) -> None:
        if key_bits != METHOD_BITS:
            data = write_bits(entry.value, entry.left)
            self.write(level, f"{write_bits(key, key_bits)} => {data}")
            self.write_data(entry.refs, level + 1)
            return
        number = key - (key >> METHOD_BITS - 1 << METHOD_BITS)
        name = self.methods.get(number, "method")
        self._write_blocks(f"{name} ({number}):", [partial(self.write_code, entry)], level)


_LONG_FORMS = {
    "code": _Listing.read_code,
    "slice": _Listing.read_slice,
    "ref": _Listing.read_ref,
    "cell": _Listing.read_cell,
    "text": _Listing.read_text,
}
"""Readers of operands with inline bits or references, by form."""
