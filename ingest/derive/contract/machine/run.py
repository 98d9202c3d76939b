"""Programs, and the run of one of their methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.build import graft_cell
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.contract.machine.code import RETURN, Code, Continuation, Jump, Return
from tonlake.ingest.derive.contract.machine.decode import ENTRY_GAS, decode
from tonlake.ingest.derive.contract.machine.stack import Account, Declined, Stack, Thrown
from tonlake.ingest.derive.contract.stack import Cell
from tonlake.ingest.errors import BocError, CellUnderflow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tonlake.ingest.derive.contract.machine.code import Signal, Step
    from tonlake.ingest.derive.contract.stack import Value

_RESULTS = (int, Cell, CellSlice, type(None))


class Program:
    """A code whose instructions are decoded as they are first run.

    What it answers follows from its cells, the account's address and data, and the arguments:
    whatever reads more (configuration, time, balance, random seed, libraries) is declined.
    """

    def __init__(self, code: Cell) -> None:
        """Copy a code; raises BocError where it is an exotic cell."""
        tree = CellTree()
        root = graft_cell(tree, code.tree, code.root)
        self._root = Code(tree.slice(root), decode).root

    def run(
        self,
        account: Account,
        arguments: Sequence[Value],
        gas_limit: int,
        planted: dict[Cell, int],
    ) -> list[Value]:
        """Return the stack that a run leaves, with the deepest value first.

        Args:
            account: Address and data; cells are built in the tree of the data.
            arguments: The stack to begin with; the last value is the method id.
            gas_limit: Gas that the run is not to go beyond.
            planted: Places in that tree of cells of others, to be kept while the tree is.

        Raises:
            Declined: the TVM has to run it.
            Thrown: the run throws, or fails.
        """
        stack = Stack(tuple(arguments), account, planted)
        try:
            _drive(stack, self._root, gas_limit)
        except CellUnderflow as error:
            raise Thrown("cell underflow") from error
        except (BocError, IndexError) as error:
            raise Declined("an exotic cell, or too few values") from error
        if not all(isinstance(value, _RESULTS) for value in stack):
            raise Declined("values of other kinds on the stack")
        return list(stack)


def _drive(stack: Stack, start: Continuation, gas_left: int) -> None:
    """Run continuations until the last one ends."""
    frames: list[Iterator[Step]] = []
    signal: Signal = start
    while True:
        gas = ENTRY_GAS
        if isinstance(signal, Continuation):
            steps, gas = signal.enter()
            frames.append(steps)
        elif isinstance(signal, Jump):
            frames[-1], gas = signal.target.enter()
        elif isinstance(signal, Return):
            frames.pop()
        elif signal is not None:
            frames.append(signal)
        gas_left -= gas
        if gas_left < 0:
            raise Declined("it may take more gas than the limit")
        if not frames:
            return
        for step in frames[-1]:
            signal = step(stack)
            if signal is not None:
                break
        else:
            signal = RETURN
