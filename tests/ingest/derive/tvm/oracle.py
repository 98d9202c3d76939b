"""Runs get-methods in tonpy's native module, which knows global version 11: a second machine."""

import base64
from functools import lru_cache
from typing import Any

from tonpy.libs import python_ton

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import (
    NAN_TEXT,
    GetMethodCall,
    Outcome,
    StackLimits,
    StackValue,
    TvmBuilder,
    TvmCell,
    TvmNan,
    TvmOpaque,
    TvmSlice,
)
from tonlake.ingest.derive.tvm.machine.run import StackExporter, build_info
from tonlake.ingest.errors import TvmStackDeep, TvmStackLarge

LIMITS = StackLimits(entries=8000, depth=100, boc_bytes=16 << 20)
_NULL, _INTEGER, _CELL, _BUILDER, _SLICE, _TUPLE = 0, 1, 2, 3, 4, 6  # vm::StackEntry::Type
_PAIR = 2
_CONFIG, _CODE = 9, 10  # of SmartContractInfo

Native = Any


def run_call(call: GetMethodCall, limits: StackLimits = LIMITS) -> Outcome:
    """Run a get-method."""
    data = None if call.data is None else parse_cell(call.data)
    # log level, code, data, allow debug, same c3, skip c7, dump of stacks
    machine = python_ton.PyTVM(0, parse_cell(call.code), data, False, True, False, False)  # noqa: FBT003
    stack = python_ton.PyStack()
    for value in call.stack:
        stack.push(_enter(value))
    machine.set_stack(stack)
    machine.set_c7(_enter_info(call))
    gas = str(call.gas_limit)
    machine.set_gasLimit(gas, gas)
    if call.libraries is not None:
        machine.set_libs(parse_cell(call.libraries))
    left = machine.run_vm()
    return Outcome(~machine.exit_code, int(machine.gas_used), _StackReader(limits).read(left))


_entered: list[Any] = []
"""The last context, and its c7 without code: most calls have the same one."""


def _enter_info(call: GetMethodCall) -> Native:
    """Return c7; the configuration is parsed once."""
    if not _entered or _entered[0] is not call.context:
        info = list(build_info(call.context, None))
        info[_CONFIG] = None
        entries = [_enter(value) for value in StackExporter(LIMITS).read(info)]
        entries[_CONFIG] = python_ton.PyStackEntry(cell=parse_cell(call.context.config))
        _entered[:] = call.context, entries
    entries = [*_entered[1]]
    entries[_CODE] = python_ton.PyStackEntry(cell=parse_cell(call.code))
    return python_ton.make_tuple(entries)


@lru_cache(256)
def parse_cell(boc: bytes) -> Native:
    """Parse a bag with one root into a cell of tonpy."""
    return python_ton.parse_string_to_cell(base64.b64encode(boc).decode("ascii"))


def _enter(value: StackValue) -> Native:  # noqa: PLR0911 - one for each kind
    if value is None:
        return python_ton.PyStackEntry()
    if isinstance(value, int):
        return python_ton.PyStackEntry(big_int=str(value))
    if isinstance(value, tuple):
        return python_ton.make_tuple([_enter(item) for item in value])
    if isinstance(value, list):
        tail = python_ton.PyStackEntry()
        for item in reversed(value):
            tail = python_ton.make_tuple([_enter(item), tail])
        return tail
    cell = parse_cell(value.boc)
    if isinstance(value, TvmCell):
        return python_ton.PyStackEntry(cell=cell)
    start = python_ton.load_as_cell_slice(cell, allow_special=False)
    if isinstance(value, TvmSlice):
        return python_ton.PyStackEntry(cell_slice=start)
    return python_ton.PyStackEntry(cell_builder=start)


class _StackReader:
    """Reads a stack within limits: shared values of the machine are written out each time."""

    def __init__(self, limits: StackLimits) -> None:
        self._limits = limits
        self._entries_left = limits.entries
        self._bytes_left = limits.boc_bytes

    def read(self, stack: Native) -> tuple[StackValue, ...]:
        count = stack.depth()
        if count > self._entries_left:
            raise TvmStackLarge(f"the stack has {count} entries")
        return tuple(self._value(stack.at(place), 0) for place in range(count - 1, -1, -1))

    def _value(self, entry: Native, depth: int) -> StackValue:
        self._count()
        kind = entry.type()
        if kind == _NULL:
            return None
        if kind == _INTEGER:
            text = entry.as_int()
            return TvmNan() if text == NAN_TEXT else int(text)
        if kind == _TUPLE:
            return self._tuple(entry.as_tuple(), depth + 1)
        return self._cells(entry)

    def _cells(self, entry: Native) -> StackValue:
        """Read a value that consists of cells."""
        kind = entry.type()
        if kind == _CELL:
            return TvmCell(self._bag(entry.as_cell()))
        if kind == _SLICE:
            return TvmSlice(self._bag(_end(entry.as_cell_slice())))
        if kind == _BUILDER:
            return TvmBuilder(self._bag(entry.as_cell_builder().get_cell(False)))  # noqa: FBT003
        return TvmOpaque()

    def _tuple(self, items: list[Native], depth: int) -> StackValue:
        """Read a tuple, or a list if the tuple is its first pair."""
        self._check_depth(depth)
        if len(items) != _PAIR:
            return tuple(self._value(item, depth) for item in items)
        spine = [items[0]]
        tail = items[1]
        while tail.type() == _TUPLE and len(pair := tail.as_tuple()) == _PAIR:
            spine.append(pair[0])
            tail = pair[1]
            if len(spine) > self._entries_left:
                raise TvmStackLarge(f"a list on the stack has more than {len(spine) - 1} values")
        if tail.type() == _NULL:
            return [self._value(item, depth) for item in spine]
        self._check_depth(depth + len(spine) - 1)
        read = self._value(tail, depth + len(spine) - 1)
        for place in range(len(spine) - 1, -1, -1):
            read = (self._value(spine[place], depth + place), read)
        return read

    def _check_depth(self, depth: int) -> None:
        if depth >= self._limits.depth:
            raise TvmStackDeep(f"the stack is nested {depth} levels deep")

    def _count(self) -> None:
        self._entries_left -= 1
        if self._entries_left < 0:
            raise TvmStackLarge(f"the stack has more than {self._limits.entries} values")

    def _bag(self, cell: Native) -> bytes:
        """Return a cell as a canonical bag with checksum, the form of all returned bags."""
        text = cell.to_boc()
        self._bytes_left -= len(text) // 4 * 3
        if self._bytes_left < 0:
            raise TvmStackLarge(f"cells of the stack have over {self._limits.boc_bytes} bytes")
        tree = parse_boc(base64.b64decode(text))
        return serialize_boc(tree, tree.roots, crc32c=True)


def _end(rest: Native) -> Native:
    """Return a cell with the rest of a slice."""
    builder = python_ton.PyCellBuilder()
    builder.store_slice(rest)
    return builder.get_cell(False)  # noqa: FBT003
