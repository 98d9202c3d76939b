"""Runs get-methods."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import find_leaf
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import Context, GetMethodCall, Outcome
from tonlake.ingest.derive.tvm.machine.cell import EMPTY_CELL, Builder, Cell, Slice, Source, plant
from tonlake.ingest.derive.tvm.machine.code import decode
from tonlake.ingest.derive.tvm.machine.info import build_info
from tonlake.ingest.derive.tvm.machine.instruction import (
    building,
    closure,
    control,
    dictops,
    environment,
    hashing,
    message,
    number,
    reading,
    sending,
    shuffle,
)
from tonlake.ingest.derive.tvm.machine.state import NAN, Machine
from tonlake.ingest.derive.tvm.stack import (
    StackLimits,
    StackValue,
    TvmBuilder,
    TvmCell,
    TvmNan,
    TvmOpaque,
    TvmSlice,
)
from tonlake.ingest.errors import TvmStackDeep, TvmStackLarge

VERSION = 15
"""The highest global version whose instructions and rules the machine has."""

INSTRUCTIONS = (
    building, closure, control, dictops, environment, hashing, message, number,
    reading, sending, shuffle,
)  # fmt: skip
"""The groups of instructions; importing them fills the tables of ``code``."""

_CODES_KEPT = 256
_PAIR = 2
_LIBRARY_BITS = 256


class Ended(NamedTuple):
    """What a run leaves; ``reads_more``: it read more than account and arguments."""

    exit_code: int
    gas_used: int
    stack: list[Any]
    reads_more: bool


def execute(
    code: Cell,
    data: Cell,
    stack: Sequence[Any],
    context: Context,
    gas_limit: int,
    libraries: Callable[[bytes], Cell | None] = lambda _hash: None,
) -> Ended:
    """Run a code; ``stack`` has the deepest value first, usually the method id last.

    ``libraries`` finds the library cells of the network by hash.
    """
    # Code in an exotic cell is reached by an implicit jump, which resolves a library.
    start = Cell(0, 0, (code,)).slice() if code.special else code.slice()
    machine = Machine(
        start,
        data,
        list(stack),
        (build_info(context, code),),
        decode,
        version=context.version,
        gas_limit=gas_limit,
        libraries=libraries,
    )
    exit_code = machine.run()
    return Ended(exit_code, machine.gas_used, machine.stack, machine.reads_more)


def open_bag(boc: bytes) -> Cell:
    """Return the root of a bag; raise BocError if it is none."""
    tree = parse_boc(boc)
    return Source(tree).cell(tree.roots[0])


open_code = lru_cache(_CODES_KEPT)(open_bag)
"""Codes and libraries, whose decoded instructions are kept with them."""


def run_call(call: GetMethodCall, limits: StackLimits) -> Outcome:
    """Run a get-method of bags.

    Raises:
        TvmStackDeep, TvmStackLarge: the resulting stack exceeds the limits.
        BocError: code, data, an argument or a library is not a bag of cells.
    """
    data = EMPTY_CELL if call.data is None else open_bag(call.data)
    libraries = (lambda _hash: None) if call.libraries is None else _open_libraries(call.libraries)
    ended = execute(
        open_code(call.code),
        data,
        enter_stack(call.stack),
        call.context,
        call.gas_limit or 0,
        libraries,
    )
    return Outcome(ended.exit_code, ended.gas_used, export_stack(ended.stack, limits))


def export_stack(stack: Sequence[Any], limits: StackLimits) -> tuple[StackValue, ...]:
    """Return values of the machine as values of bags.

    Raises:
        TvmStackDeep, TvmStackLarge: they exceed the limits.
    """
    return _Exporter(limits).read(stack)


@lru_cache(8)
def _open_libraries(boc: bytes) -> Callable[[bytes], Cell | None]:
    """Return a look-up in Hashmap 256 ^Cell."""
    tree = parse_boc(boc)
    source = Source(tree)

    def find(wanted: bytes) -> Cell | None:
        leaf = find_leaf(tree, tree.roots[0], int.from_bytes(wanted, "big"), _LIBRARY_BITS)
        return None if leaf is None else source.cell(leaf.load_ref())

    return find


def enter_stack(values: Sequence[StackValue]) -> list[Any]:
    """Return values of bags as values of the machine; raise BocError if a bag is none."""
    return [_enter(value) for value in values]


def _enter(value: StackValue) -> Any:  # noqa: ANN401, PLR0911 - a value of the machine
    """Return an argument as a value of the machine."""
    if isinstance(value, TvmCell):
        return open_bag(value.boc)
    if isinstance(value, TvmSlice):
        return open_bag(value.boc).slice()
    if isinstance(value, TvmBuilder):
        cell = open_bag(value.boc)
        return Builder(cell.value, cell.bits, cell.refs)
    if isinstance(value, TvmNan):
        return NAN
    if isinstance(value, tuple):
        return tuple(map(_enter, value))
    if isinstance(value, list):
        pairs: Any = None
        for item in reversed(value):
            pairs = (_enter(item), pairs)
        return pairs
    return value


def close_slice(part: Slice) -> Cell:
    """Return a cell with the content of a slice."""
    cell = part.cell
    if not part.start and part.end == cell.bits and part.ref_count == len(cell.refs):
        return cell
    return Cell(part.uint(), part.bits, part.refs)


class _Exporter:
    """Reads a stack within limits: shared values are written out each time."""

    def __init__(self, limits: StackLimits) -> None:
        self._limits = limits
        self._entries_left = limits.entries
        self._bytes_left = limits.boc_bytes

    def read(self, stack: Sequence[Any]) -> tuple[StackValue, ...]:
        if len(stack) > self._entries_left:
            raise TvmStackLarge(f"the stack has {len(stack)} entries")
        return tuple(self._value(value, 0) for value in stack)

    def _value(self, value: Any, depth: int) -> StackValue:  # noqa: ANN401, PLR0911
        self._entries_left -= 1
        if self._entries_left < 0:
            raise TvmStackLarge(f"the stack has more than {self._limits.entries} values")
        if value is None or value.__class__ is int:
            return value
        if value is NAN:
            return TvmNan()
        if value.__class__ is tuple:
            return self._tuple(value, depth + 1)
        if value.__class__ is Cell:
            return TvmCell(self._bag(value))
        if value.__class__ is Slice:
            return TvmSlice(self._bag(close_slice(value)))
        if value.__class__ is Builder:
            return TvmBuilder(self._bag(Cell(value.value, value.bits, value.refs)))
        return TvmOpaque()

    def _tuple(self, values: tuple[Any, ...], depth: int) -> StackValue:
        """Read a tuple, or a list if the tuple is its first pair."""
        self._check_depth(depth)
        if len(values) != _PAIR:
            return tuple(self._value(value, depth) for value in values)
        spine = [values[0]]
        tail = values[1]
        while tail.__class__ is tuple and len(tail) == _PAIR:
            spine.append(tail[0])
            tail = tail[1]
            if len(spine) > self._entries_left:
                raise TvmStackLarge(f"a list on the stack has more than {len(spine) - 1} values")
        if tail is None:
            return [self._value(value, depth) for value in spine]
        self._check_depth(depth + len(spine) - 1)
        read = self._value(tail, depth + len(spine) - 1)
        for place in range(len(spine) - 1, -1, -1):
            read = (self._value(spine[place], depth + place), read)
        return read

    def _check_depth(self, depth: int) -> None:
        if depth >= self._limits.depth:
            raise TvmStackDeep(f"the stack is nested {depth} levels deep")

    def _bag(self, cell: Cell) -> bytes:
        """Return a cell as a canonical bag with checksum, the form of all returned bags."""
        tree, place = plant(cell)
        boc = serialize_boc(tree, [place], crc32c=True)
        self._bytes_left -= len(boc)
        if self._bytes_left < 0:
            raise TvmStackLarge(f"cells of the stack have over {self._limits.boc_bytes} bytes")
        return boc
