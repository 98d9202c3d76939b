"""Disassembles contract code into TVM instructions, with operands as Fift shows them.

The code may be hostile: bits that are not an instruction are shown as bits, and the length and
nesting of the listing are bounded, because a few cells can encode endless code.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.tree import KIND_NAMES
from tonlake.ingest.derive.tvm.call import method_id
from tonlake.ingest.derive.tvm.machine.cell import Cell, Loader, Slice, Source, plant
from tonlake.ingest.derive.tvm.machine.code import find_instruction, parse_form, peek
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.run import open_bag
from tonlake.ingest.errors import BocError

Block: TypeAlias = Callable[[int], None]
"""Writes the block below an instruction, indented to a level."""


def write_bits(value: int, bits: int) -> str:
    """Format bits as Fift does: hex digits, then a tag bit and _ if the last digit is partial."""
    if not bits:
        return "x{}"
    value &= (1 << bits) - 1
    if rest := bits % 4:
        value, bits = (value << 1 | 1) << 3 - rest, bits + 4 - rest
        return f"x{{{value:0{bits // 4}X}_}}"
    return f"x{{{value:0{bits // 4}X}}}"


def write_operand(form: str, value: object) -> str:
    """Format an operand that is a number, or a register by its number."""
    if form.startswith("="):
        return form[1:]
    text = str(value)
    if form[0] not in "sc":
        return text
    return f"{form[0]}({text})" if text.startswith("-") else f"{form[0]}{text}"


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

    ``names`` are candidate names of get-methods, ``libraries`` bags of cells by hash. Raises
    BocError if ``boc`` is not a bag of cells.
    """
    methods = _ENTRIES | {method_id(name): name for name in names}
    listing = _Listing(methods, libraries or {})
    root = open_bag(boc)
    try:
        listing.write_cell(root, 0)
    except Stopped:
        listing.lines.append(f"… the listing ends after {MAX_CHARACTERS:,} characters")
    return "\n".join(listing.lines)


def _show_data(cell: Cell) -> str:
    """Return the data of a cell; kind and hash of an exotic one."""
    if not cell.special:
        return write_bits(cell.value, cell.bits)
    kind, *rest = cell.value.to_bytes(cell.bits // 8)
    return f"… {KIND_NAMES[kind]} {bytes(rest).hex()}"


class _Listing:
    """A listing in progress: the lines so far."""

    def __init__(self, methods: Mapping[int, str], libraries: Mapping[bytes, bytes]) -> None:
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

    def write_cell(self, cell: Cell, level: int) -> None:
        """Write the code in a cell."""
        if not cell.special:
            self.write_code(cell.slice(), level)
            return
        self.write(level, _show_data(cell))
        boc = self.libraries.get(cell.library or b"")
        if boc and level < MAX_LEVELS:
            try:
                library = open_bag(boc)
            except BocError:
                self.write(level + 1, "… the library is not a bag of cells")
                return
            self.write_cell(library, level + 1)

    def write_code(self, code: Slice, level: int) -> None:
        """Write instructions up to the end of the code or the first unknown one."""
        if level > MAX_LEVELS:
            self.write(level, "… nested deeper")
            return
        reader = Loader(code)
        while (rest := reader.rest()).bits or rest.ref_count:
            if not rest.bits:
                # When the bits end, the TVM continues in the first reference (implicit jump).
                following, *unused = rest.refs
                self.write_data(unused, level)
                if following.special:
                    self.write_cell(following, level)
                    return
                reader = Loader(following.slice())
                continue
            try:
                text, blocks = self._read_instruction(reader)
            except VmError:
                self.write(level, f"… no instruction: {write_bits(rest.uint(), rest.bits)}")
                self.write_data(rest.refs, level + 1)
                return
            self._write_blocks(text, blocks, level)

    def _read_instruction(self, reader: Loader) -> tuple[str, list[Block]]:
        """Return an instruction with its operands, and writers of the blocks below it.

        Raises VmError if the code is not an instruction, or ends inside one.
        """
        found = find_instruction(peek(reader))
        if found is None:
            raise VmError(Exit.INVALID_OPCODE)
        reader.uint(found.opcode_bits)
        texts: list[str] = [found.name]
        blocks: list[Block] = []
        for form in found.operands:
            value = parse_form(form).read(reader)
            kind = form.partition(":")[0]
            if kind == "code":
                blocks.append(partial(self.write_code, value))
            elif kind == "ref":
                blocks.append(partial(self.write_cell, value))
            elif kind == "dict":
                blocks.append(partial(self._write_map, value, int(texts[-1])))
            elif kind == "text":
                texts.append(ascii(value.uint().to_bytes(value.bits // 8).decode("latin-1")))
            elif kind in ("cell", "slice"):
                is_cell = kind == "cell"
                texts.append(_show_data(value) if is_cell else write_bits(value.uint(), value.bits))
                blocks += [partial(self.write_data, value.refs)] if value.refs else []
            else:
                texts.append(write_operand(form, value))
        return " ".join(texts), blocks

    def _write_blocks(self, text: str, blocks: list[Block], level: int) -> None:
        for block in blocks:
            self.write(level, f"{text} {{")
            block(level + 1)
            text = "}"
        self.write(level, text)

    def write_data(self, cells: Iterable[Cell], level: int) -> None:
        """Write the data of cells and their descendants."""
        for cell in cells:
            self.write(level, _show_data(cell))
            if level < MAX_LEVELS:
                self.write_data(cell.refs, level + 1)

    def _write_map(self, root: Cell, key_bits: int, level: int) -> None:
        """Write the entries of a dictionary: methods or data."""
        tree, place = root.origin or plant(root)
        cells = Source(tree)
        try:
            for key, value in iter_hashmap(tree, place, key_bits):
                entry = cells.cell(value.cell).slice().skip(value.pos)
                if key_bits == METHOD_BITS:
                    number = key - (key >> METHOD_BITS - 1 << METHOD_BITS)
                    name = self.methods.get(number, "method")
                    code = partial(self.write_code, entry)
                    self._write_blocks(f"{name} ({number}):", [code], level)
                else:
                    data = write_bits(entry.uint(), entry.bits)
                    self.write(level, f"{write_bits(key, key_bits)} => {data}")
                    self.write_data(entry.refs, level + 1)
        except BocError as error:
            self.write(level, f"… damaged: {error}")
