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

LIMITS = StackLimits(entries=8000, depth=100, boc_bytes=16 << 20)
_NULL, _INTEGER, _CELL, _BUILDER, _SLICE, _TUPLE = 0, 1, 2, 3, 4, 6  # vm::StackEntry::Type
_PAIR = 2
_CONFIG, _CODE = 9, 10  # of SmartContractInfo

Native = Any


def run_call(call: GetMethodCall) -> Outcome:
    """Run a get-method whose stack in the end is known to be within limits."""
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
    values = tuple(_leave(left.at(place)) for place in reversed(range(left.depth())))
    return Outcome(~machine.exit_code, int(machine.gas_used), values)


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


def _leave(entry: Native) -> StackValue:  # noqa: PLR0911 - one for each kind
    """Read a value that the machine left on its stack."""
    kind = entry.type()
    if kind == _NULL:
        return None
    if kind == _INTEGER:
        text = entry.as_int()
        return TvmNan() if text == NAN_TEXT else int(text)
    if kind == _TUPLE:
        return _leave_tuple(entry.as_tuple())
    if kind == _CELL:
        return TvmCell(_bag(entry.as_cell()))
    if kind == _SLICE:
        return TvmSlice(_bag(_end(entry.as_cell_slice())))
    if kind == _BUILDER:
        return TvmBuilder(_bag(entry.as_cell_builder().get_cell(False)))  # noqa: FBT003
    return TvmOpaque()


def _leave_tuple(items: list[Native]) -> StackValue:
    """Read a tuple, or a list if the tuple is its first pair."""
    if len(items) != _PAIR:
        return tuple(map(_leave, items))
    spine = [items[0]]
    tail = items[1]
    while tail.type() == _TUPLE and len(pair := tail.as_tuple()) == _PAIR:
        spine.append(pair[0])
        tail = pair[1]
    if tail.type() == _NULL:
        return [_leave(item) for item in spine]
    read = _leave(tail)
    for item in reversed(spine):
        read = (_leave(item), read)
    return read


def _bag(cell: Native) -> bytes:
    """Return a cell as a canonical bag with checksum, the form of all returned bags."""
    tree = parse_boc(base64.b64decode(cell.to_boc()))
    return serialize_boc(tree, tree.roots, crc32c=True)


def _end(rest: Native) -> Native:
    """Return a cell with the rest of a slice."""
    builder = python_ton.PyCellBuilder()
    builder.store_slice(rest)
    return builder.get_cell(False)  # noqa: FBT003
