"""Programs: codes whose get-methods detectors run, in this process.

Their arguments and results are cells and slices of trees, not bags. Programs are kept between
commits.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tonlake.ingest.decode.cell.build import graft_cell
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.contract.stack import Cell as TreeCell
from tonlake.ingest.derive.contract.stack import GetMethod, Mismatch, Value
from tonlake.ingest.derive.tvm.call import (
    SUCCESS,
    Context,
    StackValue,
    TvmCell,
    TvmOpaque,
    TvmSlice,
    make_context,
    method_id,
)
from tonlake.ingest.derive.tvm.machine.cell import Cell, Slice, Source, plant
from tonlake.ingest.derive.tvm.machine.run import (
    VERSION,
    Ended,
    close_slice,
    enter_value,
    execute,
    take_slice,
)
from tonlake.ingest.errors import BocError

_MAX_NESTING = 100
"""Nesting of tuples in a result that detectors read."""
_MAX_WRITTEN = 1 << 16
"""Values and cells in such a result; shared ones count as often as they are written out."""


GAS_LIMIT = 1_000_000


class Program:
    """A code whose decoded instructions are kept between runs of detectors."""

    def __init__(self, code: TreeCell) -> None:
        """Copy a code, so that it does not keep the tree of others."""
        tree = CellTree()
        self.cell = Source(tree).cell(graft_cell(tree, code.tree, code.root))

    def run(
        self,
        data: TreeCell,
        arguments: Sequence[Value],
        context: Context,
        libraries: Callable[[bytes], Cell | None] = lambda _hash: None,
    ) -> Ended:
        """Run a get-method of an account with this code; ``libraries`` finds libraries by hash.

        The last argument is the method id. The stack has values of detectors. Raises BocError if
        the values left on the stack are nested too deeply to be read, or too many.
        """
        stack = [_enter_tree(value) for value in arguments]
        source = Source(data.tree)
        ended = execute(
            self.cell,
            source.cell(data.root),
            stack,
            context,
            GAS_LIMIT,
            libraries,
        )
        leaver = _Leaver()
        return ended._replace(stack=[leaver.leave(value) for value in ended.stack])


def run_alone(question: GetMethod, code: TreeCell, data: TreeCell) -> list[Value]:
    """Return the stack that a get-method of a contract outside the chain leaves, as ``run``."""
    arguments = (*question.arguments, method_id(question.method))
    context = make_context(*question.address, VERSION)
    ended = Program(code).run(data, arguments, context)
    if ended.exit_code not in SUCCESS:
        raise Mismatch(f"{question.method} ended with exit code {ended.exit_code}")
    return ended.stack


def _enter_tree(value: Value) -> Any:  # noqa: ANN401 - a value of the machine
    if isinstance(value, TreeCell):
        return Source(value.tree).cell(value.root)
    if isinstance(value, CellSlice):
        return take_slice(Source(value.tree), value)
    if isinstance(value, tuple):
        return tuple(map(_enter_tree, value))
    return value


class _Leaver:
    """Turns values of the machine into those of detectors; what they do not read becomes opaque."""

    def __init__(self) -> None:
        self._left = _MAX_WRITTEN

    def leave(self, value: Any, depth: int = 0) -> Value:  # noqa: ANN401 - a value of the machine
        """Return a value for detectors; raise BocError beyond the limits."""
        self._count(1)
        if value.__class__ is Cell:
            return TreeCell(*(value.origin or self._plant(value)))
        if value.__class__ is Slice:
            return self._leave_slice(value)
        if value.__class__ is tuple:
            if depth >= _MAX_NESTING:
                raise BocError(f"a value on the stack is nested over {_MAX_NESTING} levels deep")
            return tuple(self.leave(item, depth + 1) for item in value)
        return value if value is None or value.__class__ is int else TvmOpaque()

    def _leave_slice(self, part: Slice) -> CellSlice:
        cell = part.cell
        origin = cell.origin
        if origin is None or cell.special or part.ref_end not in (part.ref, len(cell.refs)):
            tree, place = self._plant(close_slice(part))
            return tree.slice(place)
        tree, place = origin
        start = CellSlice.at(tree, place, cell.value >> cell.bits - part.end, part.bits)
        start.ref = part.ref if part.ref_count else len(cell.refs)
        return start

    def _plant(self, cell: Cell) -> tuple[CellTree, int]:
        tree, place = plant(cell)
        self._count(tree.count)
        return tree, place

    def _count(self, written: int) -> None:
        self._left -= written
        if self._left < 0:
            raise BocError(f"a stack has over {_MAX_WRITTEN} values and cells")


def from_tvm(value: StackValue) -> Value:
    """Return a value of bags for detectors; raise BocError if a bag is none."""
    return _Leaver().leave(enter_value(value))


def to_tvm(value: Value) -> StackValue:
    """Return a value in the form that the TVM accepts."""
    if isinstance(value, CellSlice):
        return TvmSlice(TreeCell(*plant(close_slice(_enter_tree(value)))).bag())
    return TvmCell(value.bag()) if isinstance(value, TreeCell) else value


MAX_PROGRAMS = 300
"""Maximum number of codes, up to 300 kB each once fully run: more than most commits have."""


class ProgramCache:
    """An LRU cache of programs, by code hash."""

    def __init__(self) -> None:
        self._programs: dict[bytes, Program] = {}

    def find(self, code: TreeCell) -> Program:
        """Return the program of a code."""
        program = self._programs.pop(code.hash, None) or Program(code)
        self._programs[code.hash] = program
        if len(self._programs) > MAX_PROGRAMS:
            del self._programs[next(iter(self._programs))]
        return program
