"""The state of a run: stack, control registers, gas; and the loop that runs decoded code.

A step is a function of the machine. It returns None, or the continuation that runs next. Rules of
calls and jumps, gas prices: ``crypto/vm/vm.cpp`` and ``vm.h`` of the node.
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any, TypeVar

from tonlake.ingest.derive.tvm.machine.cell import EMPTY_CELL, Builder, Cell, Slice
from tonlake.ingest.derive.tvm.machine.continuation import (
    QUIT,
    QUIT_ALTERNATIVE,
    QUIT_WITH_ERROR,
    Continuation,
    Ordinary,
    Quit,
    Resume,
    Save,
    StartChild,
)
from tonlake.ingest.derive.tvm.machine.fault import Exit, OutOfGas, VmError

Step = Callable[["Machine"], "Continuation | None"]
Decode = Callable[[Slice], list[tuple[int, Step]]]

LOAD_GAS, RELOAD_GAS, CREATE_GAS = 100, 25, 500
EXCEPTION_GAS = 50
FREE_STACK_DEPTH = 32
_FREE_JUMPS = 8
_JUMP_GAS_SINCE = _NEED_ALL_SINCE = 9
MAX_DATA_DEPTH = 512
INFINITE_GAS = (1 << 63) - 1
INTEGER_LIMIT = 1 << 256
MAX_TUPLE = 255

ACCOUNT, MOMENT = 1, 2
"""Bits of what a run depends on besides code, stack, configuration and libraries: data and address;
balance and time."""


_REGISTERS: dict[int, type] = {**dict.fromkeys(range(4), Continuation), 4: Cell, 5: Cell, 7: tuple}
"""What the control registers hold."""
_REGISTER_DEPENDS = {4: ACCOUNT, 7: MOMENT}
_PARAMETER_DEPENDS = {3: MOMENT, 7: MOMENT, 8: ACCOUNT, 14: MOMENT}
"""Time, balance, address; unpacked configuration, with the storage prices of the time."""


class Nan:
    """Not a number: what quiet arithmetic leaves on overflow."""

    __slots__ = ()


NAN = Nan()


T = TypeVar("T")


def expect(value: Any, *kinds: type) -> Any:  # noqa: ANN401 - a stack value
    """Return a value of one of the types; raise VmError for any other."""
    if value.__class__ not in kinds:
        raise VmError(Exit.TYPE_CHECK)
    return value


def _popper(kind: type[T]) -> Callable[[Machine], T]:
    """Return a method that pops a value of a type."""

    def pop(machine: Machine) -> T:
        value = machine.stack.pop()
        if value.__class__ is not kind:
            raise VmError(Exit.TYPE_CHECK)
        return value

    return pop


class Machine:
    """A run in progress.

    ``c`` are the control registers by number: c0 to c5, and c7; ``c[6]`` does not exist.
    ``depends`` has the bits of what was read of the account and its block.
    """

    __slots__ = ("base_gas", "c", "code", "committed", "decode", "depends", "free_extra",
                 "free_signatures", "gas", "gas_limit", "gas_max", "libraries", "loaded", "stack",
                 "version")  # fmt: skip

    def __init__(
        self,
        code: Slice,
        data: Cell,
        stack: list[Any],
        c7: tuple[Any, ...],
        decode: Decode,
        *,
        version: int,
        gas_limit: int,
        libraries: Callable[[bytes], Cell | None],
    ) -> None:
        """Prepare a run of ``code`` with c3 set to it; ``libraries`` finds libraries by hash."""
        self.code = code
        self.stack = stack
        self.c: list[Any] = [QUIT, QUIT_ALTERNATIVE, QUIT_WITH_ERROR, Ordinary(code)]
        self.c += [data, EMPTY_CELL, None, c7]
        self.decode = decode
        self.version = version
        self.gas = self.base_gas = self.gas_limit = self.gas_max = gas_limit
        self.libraries = libraries
        self.loaded: dict[tuple[int, int, int], list[Cell]] = {}
        self.committed: tuple[Cell, Cell] | None = None
        self.free_signatures = 10
        self.free_extra = 5
        self.depends = 0

    @property
    def gas_used(self) -> int:
        """The gas that the run has consumed so far."""
        return self.base_gas - self.gas

    def use(self, gas: int) -> None:
        """Consume gas."""
        self.gas -= gas
        if self.gas < 0:
            raise OutOfGas

    def use_stack(self, depth: int) -> None:
        """Consume the gas of a stack that is copied."""
        if depth > FREE_STACK_DEPTH:
            self.use(depth - FREE_STACK_DEPTH)

    def set_gas_limit(self, limit: int) -> None:
        """Change the gas limit, up to ``gas_max``; end the run if more is consumed already."""
        limit = min(max(limit, 0), self.gas_max)
        used = self.gas_used
        if limit < used:
            raise OutOfGas
        self.gas_limit = self.base_gas = limit
        self.gas = limit - used

    # The stack

    def need(self, count: int) -> None:
        """Raise VmError if there are fewer values."""
        if len(self.stack) < count:
            raise VmError(Exit.STACK_UNDERFLOW)

    def need_all(self, count: int) -> None:
        """Raise VmError if there are fewer values where the node asks since global version 9."""
        if self.version >= _NEED_ALL_SINCE:
            self.need(count)

    def pop_int(self) -> int | Nan:
        """Pop an integer or NaN."""
        value = self.stack.pop()
        if value.__class__ is not int and value is not NAN:
            raise VmError(Exit.TYPE_CHECK)
        return value

    def pop_finite(self) -> int:
        """Pop an integer; NaN is an overflow."""
        value = self.stack.pop()
        if value.__class__ is int:
            return value
        raise VmError(Exit.INTEGER_OVERFLOW if value is NAN else Exit.TYPE_CHECK)

    def pop_bool(self) -> bool:
        """Pop an integer and return whether it is not 0."""
        return self.pop_finite() != 0

    def pop_range(self, most: int, least: int = 0) -> int:
        """Pop an integer in a range."""
        value = self.stack.pop()
        if value.__class__ is not int:
            raise VmError(Exit.RANGE_CHECK if value is NAN else Exit.TYPE_CHECK)
        if not least <= value <= most:
            raise VmError(Exit.RANGE_CHECK)
        return value

    def push_int(self, value: int) -> None:
        """Push an integer; raise VmError if it has more than 257 bits."""
        if not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
            raise VmError(Exit.INTEGER_OVERFLOW)
        self.stack.append(value)

    def push_bool(self, value: bool) -> None:  # noqa: FBT001 - the value itself
        """Push -1 or 0."""
        self.stack.append(-1 if value else 0)

    def leave(
        self,
        values: tuple[Any, ...] | None,
        *,
        quiet: bool,
        kept: tuple[Any, ...] = (),
        error: int = Exit.CELL_UNDERFLOW,
    ) -> None:
        """Push a result; if there is none, throw, or leave ``kept`` and 0 in a quiet form."""
        if values is not None:
            self.stack += values
            if quiet:
                self.stack.append(-1)
        elif quiet:
            self.stack += (*kept, 0)
        else:
            raise VmError(error)

    pop_slice = _popper(Slice)
    pop_cell = _popper(Cell)
    pop_builder = _popper(Builder)

    def pop_maybe_cell(self) -> Cell | None:
        """Pop a cell or null."""
        found: Cell | None = expect(self.stack.pop(), Cell, NoneType)
        return found

    def pop_tuple(self, most: int = MAX_TUPLE, least: int = 0) -> tuple[Any, ...]:
        """Pop a tuple of a length."""
        value = self.stack.pop()
        if value.__class__ is not tuple or not least <= len(value) <= most:
            raise VmError(Exit.TYPE_CHECK)
        return value

    def pop_continuation(self) -> Continuation:
        """Pop a continuation."""
        value = self.stack.pop()
        if not isinstance(value, Continuation):
            raise VmError(Exit.TYPE_CHECK)
        return value

    # Cells

    def charge_load(self, cell: Cell) -> None:
        """Consume the gas of loading a cell: less if an equal one was loaded before."""
        key = cell.value, cell.bits, len(cell.refs)
        seen = self.loaded.get(key)
        if seen is None:
            self.loaded[key] = [cell]
            self.use(LOAD_GAS)
        elif any(cell is other or cell.hash == other.hash for other in seen):
            self.use(RELOAD_GAS)
        else:
            seen.append(cell)
            self.use(LOAD_GAS)

    def load(self, cell: Cell) -> Slice:
        """Load a cell and consume the gas of it; a library cell yields its library."""
        self.charge_load(cell)
        if cell.special:
            wanted = cell.library
            found = None if wanted is None else self.libraries(wanted)
            if found is None or found.special:
                raise VmError(Exit.CELL_UNDERFLOW)
            cell = found
        return Slice(cell, 0, cell.bits, 0, len(cell.refs))

    def finish(self, builder: Builder) -> Cell:
        """Return the cell of a builder and consume the gas of creating it."""
        self.use(CREATE_GAS)
        return builder.cell()

    # Registers

    def get_register(self, number: int) -> Any:  # noqa: ANN401 - a stack value
        """Return a control register; raise VmError if there is none with this number."""
        if number not in _REGISTERS:
            raise VmError(Exit.RANGE_CHECK)
        self.depends |= _REGISTER_DEPENDS.get(number, 0)
        return self.c[number]

    def note_parameter(self, place: int) -> None:
        """Note that the run reads a value of SmartContractInfo."""
        self.depends |= _PARAMETER_DEPENDS.get(place, 0)

    def check_register(self, number: int, value: Any) -> None:  # noqa: ANN401 - a stack value
        """Raise VmError unless a register can hold a value."""
        if not isinstance(value, _REGISTERS.get(number, ())):
            raise VmError(Exit.TYPE_CHECK)

    def restore(self, save: Save) -> None:
        """Set the registers that a continuation saved."""
        c = self.c
        for number, value in save.items():
            c[number] = value

    def take_code(self, code: Slice, saved: int = 0, kept: int = -1, nargs: int = -1) -> Ordinary:
        """Return the current continuation from ``code`` on: ``extract_cc``.

        ``saved`` is a mask of c0, c1, c2, which move into it; the ``kept`` top values stay on the
        stack (-1: all), the others move into it.
        """
        stack = self.stack
        rest: list[Any] | None = None
        if kept >= 0 and kept != len(stack):
            self.need(kept)
            at = len(stack) - kept
            rest, self.stack = stack[:at], stack[at:]
        found = Ordinary(code, None, rest, nargs)
        defaults = (QUIT, QUIT_ALTERNATIVE, QUIT_WITH_ERROR)
        for number, default in enumerate(defaults):
            if saved >> number & 1:
                found.save[number] = self.c[number]
                self.c[number] = default
        return found

    # Calls and jumps

    def call(self, target: Continuation, code: Slice) -> Continuation:
        """Return what runs next if ``target`` is called and returns to ``code``."""
        if target.has_data:
            if 0 in target.save:
                return self.jump(target)
            if target.stack is not None or target.nargs >= 0:
                return self.call_with(target, code, -1, -1)
        self.c[0] = Ordinary(code, {0: self.c[0]})
        return target

    def call_with(
        self, target: Continuation, code: Slice, passed: int, returned: int
    ) -> Continuation:
        """Call with ``passed`` arguments and ``returned`` results; -1: any number."""
        if 0 in target.save:
            return self.jump(target, passed)
        stack, depth = self.stack, len(self.stack)
        self._check_passed(target, passed)
        copied, skipped = target.nargs, 0
        if passed >= 0:
            if copied >= 0:
                skipped = passed - copied
            else:
                copied = passed
        if target.stack and copied < 0:
            copied = depth
        left = None
        if copied >= 0:
            at = depth - copied
            left = stack[: max(at - skipped, 0)]
            stack = (target.stack or []) + stack[at:]
            self.use_stack(len(stack))
        self.c[0] = Ordinary(code, {0: self.c[0]}, left, returned)
        self.stack = stack
        return target

    def _check_passed(self, target: Continuation, passed: int) -> None:
        """Raise VmError if there are fewer arguments than a continuation takes."""
        depth = len(self.stack)
        if passed > depth or target.nargs > depth or 0 <= passed < target.nargs:
            raise VmError(Exit.STACK_UNDERFLOW)

    def jump(self, target: Continuation, passed: int = -1) -> Continuation:
        """Return ``target`` after its stack is set up: its own values, then ``passed`` ones."""
        if passed < 0 and target.stack is None and target.nargs < 0:
            return target
        self._check_passed(target, passed)
        copied = target.nargs
        if passed >= 0 and copied < 0:
            copied = passed
        stack = self.stack
        if target.stack:
            at = 0 if copied < 0 else len(stack) - copied
            self.stack = target.stack + stack[at:]
            self.use_stack(len(self.stack))
        elif 0 <= copied < len(stack):
            self.stack = stack[len(stack) - copied :]
            self.use_stack(copied)
        return target

    def ret(self, passed: int = -1) -> Continuation:
        """Return to c0."""
        target, self.c[0] = self.c[0], QUIT
        return self.jump(target, passed)

    def ret_alternative(self) -> Continuation:
        """Return to c1."""
        target, self.c[1] = self.c[1], QUIT_ALTERNATIVE
        return self.jump(target)

    def throw(self, code: int, argument: Any = 0) -> Continuation:  # noqa: ANN401 - a stack value
        """Return the handler of exceptions with an exit code and its argument on the stack."""
        self.stack = [argument, code]
        self.use(EXCEPTION_GAS)
        return self.jump(self.c[2])

    def _enter(self, target: Continuation) -> list[tuple[int, Step]]:
        """Jump until code is entered; return its steps."""
        following: Continuation | None = target
        jumps = 0
        while following is not None:
            if jumps:
                following = self.jump(following)
            following = following.jump(self)
            jumps += 1
            if jumps > _FREE_JUMPS and following and self.version >= _JUMP_GAS_SINCE:
                self.use(1)
        code = self.code
        key = code.start, code.end, code.ref, code.ref_end
        blocks = code.cell.blocks
        found = blocks.get(key)
        if found is None:
            found = blocks[key] = self.decode(code)
        return found

    def run(self) -> int:
        """Run to the end and return the exit code; the stack is left in ``stack``.

        Machines that it starts run in the same loop, however deep they nest.
        """
        machine = self
        target: Continuation = Ordinary(self.code)
        waiting: list[tuple[Machine, StartChild]] = []
        while True:
            try:
                code = machine._run(target)
            except StartChild as start:
                waiting.append((machine, start))
                machine, target = start.child, Ordinary(start.child.code)
                continue
            if not waiting:
                return code
            machine, started = waiting.pop()
            target = Resume(started, code)

    def _run(self, target: Continuation) -> int:
        """Run until the machine ends or starts another."""
        try:
            while True:
                try:
                    self._run_until_thrown(target)
                except VmError as error:
                    target = self.throw(error.code)
                except IndexError:  # steps index the stack without asking how deep it is
                    target = self.throw(Exit.STACK_UNDERFLOW)
        except Quit as ended:
            return self._end(ended.code)
        except VmError as error:  # thrown while the handler was set up
            return error.code
        except OutOfGas:
            self.stack = [self.gas_used]
            return Exit.OUT_OF_GAS

    def _run_until_thrown(self, target: Continuation) -> None:
        following: Continuation | None = target
        while True:
            for gas, step in self._enter(following):  # type: ignore[arg-type] # blocks end in jumps
                self.gas -= gas
                if self.gas < 0:
                    raise OutOfGas
                following = step(self)
                if following is not None:
                    break

    def _end(self, code: int) -> int:
        """Return the exit code after the automatic commit of a success."""
        if code in (0, 1) and not self.commit():
            self.stack = [0]
            return Exit.CELL_OVERFLOW
        return code

    def commit(self) -> bool:
        """Commit data and actions; return False if they are too deep or have levels."""
        self.depends |= ACCOUNT
        data, actions = self.c[4], self.c[5]
        if any(each.mask or each.depth > MAX_DATA_DEPTH for each in (data, actions)):
            return False
        self.committed = data, actions
        return True
