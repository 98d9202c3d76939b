"""RUNVM: a machine within a machine (``contops.cpp``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.tvm.machine.cell import EMPTY_CELL, Slice
from tonlake.ingest.derive.tvm.machine.code import control
from tonlake.ingest.derive.tvm.machine.continuation import (
    Continuation,
    Ordinary,
    StartChild,
    Stop,
)
from tonlake.ingest.derive.tvm.machine.fault import RANGE_CHECK, STACK_UNDERFLOW, VmError
from tonlake.ingest.derive.tvm.machine.instruction.closure import take_top
from tonlake.ingest.derive.tvm.machine.state import INFINITE_GAS

if TYPE_CHECKING:
    from tonlake.ingest.derive.tvm.machine.state import Machine

_RUN_GAS = 40
_NO_METHODS = 11

_SAME_C3, _PUSH_ZERO, _DATA, _GAS, _C7, _ACTIONS, _HARD_GAS, _ISOLATED, _COUNTED = (
    1 << bit for bit in range(9)
)
_MAX_STACK = (1 << 30) - 1


class _Child:
    """A machine that RUNVM starts, and what to take over from it."""

    def __init__(self, machine: Machine, code: Slice, flags: int) -> None:
        """Pop the operands and prepare the child; ``code`` follows in the parent."""
        if flags >> 9:
            raise VmError(RANGE_CHECK)
        machine.use(_RUN_GAS)
        self.code = code
        self.flags = flags
        hard = machine.pop_range(INFINITE_GAS) if flags & _HARD_GAS else INFINITE_GAS
        limit = machine.pop_range(INFINITE_GAS) if flags & _GAS else INFINITE_GAS
        hard = max(hard, limit) if flags & _HARD_GAS else limit
        c7 = machine.pop_tuple() if flags & _C7 else ()
        data = machine.pop_cell() if flags & _DATA else EMPTY_CELL
        self.count = machine.pop_range(_MAX_STACK) if flags & _COUNTED else -1
        program = machine.pop_slice()
        size = machine.pop_range(_MAX_STACK)
        machine.need(size)
        values = take_top(machine, size)
        machine.use_stack(size)
        self.child = machine.spawn(program, data, values, c7, limit=limit, hard_limit=hard)
        self._set_flags(machine)

    def _set_flags(self, machine: Machine) -> None:
        child = self.child
        if not self.flags & _SAME_C3:
            child.c[3] = Stop(_NO_METHODS)
        elif self.flags & _PUSH_ZERO:
            child.stack.append(0)
        if not self.flags & _ISOLATED:
            child.loaded = machine.loaded
            child.free_signatures, child.free_extra = machine.free_signatures, machine.free_extra

    def resume(self, machine: Machine, code: int) -> Continuation:
        """Take over the results of the child."""
        child = self.child
        if not self.flags & _ISOLATED:
            machine.free_signatures, machine.free_extra = child.free_signatures, child.free_extra
        machine.reads_more = machine.reads_more or child.reads_more
        machine.use(min(child.gas_used, child.gas_limit + 1))
        values = child.stack
        if code not in (0, 1):
            values = values[-1:]
        elif 0 <= self.count < len(values):
            values = values[len(values) - self.count :]
        elif self.count > len(values):
            code, values = STACK_UNDERFLOW, [0]
        machine.stack = machine.stack + values
        machine.use_stack(len(values))
        machine.stack.append(code)
        data, actions = child.committed or (None, None)
        if self.flags & _DATA:
            machine.stack.append(data)
        if self.flags & _ACTIONS:
            machine.stack.append(actions)
        if self.flags & _GAS:
            machine.stack.append(child.gas_used)
        return Ordinary(self.code)


def _run_child(machine: Machine, code: Slice, flags: int) -> Continuation | None:
    started = _Child(machine, code, flags)
    raise StartChild(started.child, started.resume)


control("RUNVM")(lambda code, flags: lambda machine: _run_child(machine, code, flags))
control("RUNVMX")(lambda code: lambda machine: _run_child(machine, code, machine.pop_range(0xFFF)))
