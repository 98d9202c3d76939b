"""Continuations, and the registers that they save.

Each has ``save``, the control registers that it restores, ``stack`` and ``nargs`` (VmControlData).
Those without such data of their own are wrapped in Envelope when they get some. All are treated as
immutable: ``with_data`` returns a copy to change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tonlake.ingest.derive.tvm.machine.cell import Slice
from tonlake.ingest.derive.tvm.machine.fault import VmError

if TYPE_CHECKING:
    from tonlake.ingest.derive.tvm.machine.state import Machine

Save = dict[int, Any]
"""Values of control registers by number: 0 to 3 continuations, 4 and 5 cells, 7 a tuple."""

_MAX_EXIT_CODE = 0xFFFF


@dataclass(eq=False)
class Quit(Exception):
    """The run ends with an exit code."""

    code: int


class Continuation:
    """What can be executed; ``jump`` returns what comes next, or None once code was entered."""

    __slots__ = ()

    save: Save = {}  # noqa: RUF012 - never changed: those with registers have their own
    stack: list[Any] | None = None
    nargs: int = -1
    has_data = False

    def jump(self, machine: Machine) -> Continuation | None:
        """Enter it."""
        raise NotImplementedError

    def with_data(self) -> Data:
        """Return a copy whose saved registers, stack and number of arguments may be set."""
        return Envelope(self)

    def saving(self, registers: Save) -> Data:
        """Return a copy that saves registers, too, unless it has saved them already."""
        made = self.with_data()
        made.save = registers | made.save
        return made


@dataclass(eq=False)
class StartChild(Exception):
    """A machine starts another (RUNVM).

    ``resume`` is given the machine that started it and the exit code when the other has ended.
    """

    child: Machine
    resume: Callable[[Machine, int], Continuation]


@dataclass(slots=True, eq=False)
class Resume(Continuation):
    """Goes on after another machine has ended with an exit code."""

    started: StartChild
    code: int

    def jump(self, machine: Machine) -> Continuation | None:
        """Take over the results."""
        return self.started.resume(machine, self.code)


class Data(Continuation):
    """A continuation with control data; ``cp`` is its codepage, None for the current one."""

    __slots__ = ("cp", "nargs", "save", "stack")
    has_data = True

    def __init__(self, save: Save, stack: list[Any] | None, nargs: int) -> None:
        self.save = save
        self.stack = stack
        self.nargs = nargs
        self.cp: int | None = None


class Ordinary(Data):
    """Code, from a bit and a reference of a cell on."""

    __slots__ = ("code",)

    def __init__(
        self, code: Slice, save: Save | None = None, stack: list[Any] | None = None, nargs: int = -1
    ) -> None:
        """Take a slice as code of codepage 0."""
        super().__init__({} if save is None else save, stack, nargs)
        self.code = code
        self.cp = 0

    def jump(self, machine: Machine) -> Continuation | None:
        """Restore the saved registers and enter the code."""
        if self.save:
            machine.restore(self.save)
        machine.code = self.code
        return None

    def with_data(self) -> Data:
        """Return a copy."""
        stack = None if self.stack is None else list(self.stack)
        return Ordinary(self.code, dict(self.save), stack, self.nargs)


class Envelope(Data):
    """Control data around another continuation: ``vmc_envelope``."""

    __slots__ = ("next",)

    def __init__(self, following: Continuation) -> None:
        super().__init__({}, None, -1)
        self.next = following

    def jump(self, machine: Machine) -> Continuation | None:
        """Restore the saved registers and go on."""
        machine.restore(self.save)
        return self.next

    def with_data(self) -> Data:
        """Return a copy."""
        made = Envelope(self.next)
        made.save = dict(self.save)
        made.stack = None if self.stack is None else list(self.stack)
        made.nargs = self.nargs
        return made


@dataclass(slots=True, eq=False)
class Stop(Continuation):
    """Ends the run with an exit code: ``vmc_quit``."""

    code: int

    def jump(self, machine: Machine) -> Continuation | None:  # noqa: ARG002 - as the others
        """End the run."""
        raise Quit(self.code)


class StopWithError(Continuation):
    """Ends the run with the exit code on the stack: ``vmc_quit_exc``."""

    __slots__ = ()

    def jump(self, machine: Machine) -> Continuation | None:
        """End the run."""
        try:
            machine.need(1)
            code = machine.pop_range(_MAX_EXIT_CODE)
        except VmError as error:
            code = error.code
        raise Quit(code)


@dataclass(slots=True, eq=False)
class PushInteger(Continuation):
    """Pushes an integer and goes on: ``vmc_pushint``."""

    value: int
    next: Continuation

    def jump(self, machine: Machine) -> Continuation | None:
        """Push the integer."""
        machine.stack.append(self.value)
        return self.next


@dataclass(slots=True, eq=False)
class Repeat(Continuation):
    """Runs ``body`` ``count`` times, then ``after``: ``vmc_repeat``."""

    body: Continuation
    after: Continuation
    count: int

    def jump(self, machine: Machine) -> Continuation | None:
        """Run the body once more, or end the loop."""
        if self.count <= 0:
            return self.after
        if 0 not in self.body.save:
            machine.c[0] = Repeat(self.body, self.after, self.count - 1)
        return self.body


@dataclass(slots=True, eq=False)
class Again(Continuation):
    """Runs ``body`` for ever: ``vmc_again``."""

    body: Continuation

    def jump(self, machine: Machine) -> Continuation | None:
        """Run the body once more."""
        if 0 not in self.body.save:
            machine.c[0] = self
        return self.body


@dataclass(slots=True, eq=False)
class Until(Continuation):
    """Runs ``body`` until it leaves a true value, then ``after``: ``vmc_until``."""

    body: Continuation
    after: Continuation

    def jump(self, machine: Machine) -> Continuation | None:
        """Run the body once more, or end the loop."""
        if machine.pop_bool():
            return self.after
        if 0 not in self.body.save:
            machine.c[0] = self
        return self.body


@dataclass(slots=True, eq=False)
class While(Continuation):
    """Runs ``condition`` and ``body`` in turn: ``vmc_while_cond``, ``vmc_while_body``.

    ``checks`` is set if the condition has just run.
    """

    condition: Continuation
    body: Continuation
    after: Continuation
    checks: bool

    def jump(self, machine: Machine) -> Continuation | None:
        """Run the other part, or end the loop."""
        if self.checks and not machine.pop_bool():
            return self.after
        following = self.body if self.checks else self.condition
        if 0 not in following.save:
            machine.c[0] = While(self.condition, self.body, self.after, checks=not self.checks)
        return following


QUIT = Stop(0)
QUIT_ALTERNATIVE = Stop(1)
QUIT_WITH_ERROR = StopWithError()
