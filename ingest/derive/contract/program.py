"""Programs: codes whose get-methods detectors run, in this process.

Their arguments and results are cells and slices of trees, not bags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.ingest.decode.cell.build import graft_cell
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.contract.stack import Cell as TreeCell
from tonlake.ingest.derive.tvm.machine.cell import Cell, Slice, Source, plant
from tonlake.ingest.derive.tvm.machine.info import take_slice
from tonlake.ingest.derive.tvm.machine.run import Ended, close_slice, execute
from tonlake.ingest.derive.tvm.stack import TvmOpaque
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.derive.contract.stack import Value
    from tonlake.ingest.derive.tvm.context import Context

_MAX_NESTING = 100
"""Nesting of tuples in a result that detectors read."""


class Program:
    """A code whose decoded instructions are kept between runs of detectors."""

    def __init__(self, code: TreeCell) -> None:
        """Copy a code, so that it does not keep the tree of others."""
        tree = CellTree()
        self._cell = Source(tree).cell(graft_cell(tree, code.tree, code.root))

    def run(
        self,
        library: Program | None,
        data: TreeCell,
        arguments: Sequence[Value],
        context: Context,
        gas_limit: int,
    ) -> Ended:
        """Run a get-method of an account with this code; ``library`` is what the code refers to.

        The last argument is the method id. The stack has values of detectors.

        Raises:
            BocError: a value left on the stack is nested too deeply to be read.
        """
        stack = [_enter_tree(value) for value in arguments]
        source = Source(data.tree)
        found = None if library is None else library._cell  # noqa: SLF001 - the same class
        ended = execute(
            self._cell,
            source.cell(data.root),
            stack,
            context,
            gas_limit,
            lambda wanted: found if found is not None and found.hash == wanted else None,
        )
        return ended._replace(stack=[_leave_tree(value, 0) for value in ended.stack])


def _enter_tree(value: Value) -> Any:  # noqa: ANN401 - a value of the machine
    if isinstance(value, TreeCell):
        return Source(value.tree).cell(value.root)
    if isinstance(value, CellSlice):
        return take_slice(Source(value.tree), value)
    if isinstance(value, tuple):
        return tuple(map(_enter_tree, value))
    return value


def _leave_tree(value: Any, depth: int) -> Value:  # noqa: ANN401 - a value of the machine
    """Return a value for detectors; those that they do not read become opaque."""
    if value.__class__ is Cell:
        return TreeCell(*(value.origin or plant(value)))
    if value.__class__ is Slice:
        return _leave_slice(value)
    if value.__class__ is tuple:
        if depth >= _MAX_NESTING:
            raise BocError(f"a value on the stack is nested over {_MAX_NESTING} levels deep")
        return tuple(_leave_tree(item, depth + 1) for item in value)
    return value if value is None or value.__class__ is int else TvmOpaque()


def _leave_slice(part: Slice) -> CellSlice:
    cell = part.cell
    origin = cell.origin
    if origin is None or cell.special or part.ref_end not in (part.ref, len(cell.refs)):
        cell = close_slice(part)
        tree, place = plant(cell)
        return tree.slice(place)
    tree, place = origin
    start = CellSlice.at(tree, place, cell.value >> cell.bits - part.end, part.bits)
    start.ref = part.ref if part.ref_count else len(cell.refs)
    return start
