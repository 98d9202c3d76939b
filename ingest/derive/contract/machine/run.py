"""Programs: decode code into steps and run a get-method."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.build import graft_cell
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.contract.machine import (
    address,
    building,
    control,
    dictionary,
    number,
    reading,
    shuffle,
)
from tonlake.ingest.derive.contract.machine.code import RETURN, Code, Continuation, Jump, Return
from tonlake.ingest.derive.contract.machine.stack import Account, Declined, Stack, Thrown
from tonlake.ingest.derive.contract.stack import Cell
from tonlake.ingest.errors import BocError, CellUnderflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tonlake.ingest.derive.contract.machine.code import Signal, Step
    from tonlake.ingest.derive.contract.stack import Value

_MODULES = (shuffle, number, reading, address, building, control, dictionary)
_BYTE = 8
_WORD = 16

ENTRY_GAS = 200
"""Upper bound of the gas to enter a continuation, including the load of its cell."""

_LIGHT_GAS, _GAS, _LOOK_UP_GAS = 60, 800, 60_000
"""Upper bounds of the gas of an instruction, in addition to its bits: one that moves integers, any
other (500 to end a cell, 100 to load one, 255 for a tuple), and one that walks a dictionary."""

_LIGHT = frozenset((*range(0x6F), *range(0x70, 0x86), *range(0xA0, 0xC4)))
_DICTIONARY = 0xF4


def _read_prefix(text: str) -> tuple[int, int]:
    """Return length in bits and value of a prefix in the notation of the TVM, such as ``F2C4_``."""
    value, bits = int(text.rstrip("_"), 16), len(text.rstrip("_")) * 4
    if text.endswith("_"):
        tag = (value & -value).bit_length()
        value, bits = value >> tag, bits - tag
    return bits, value


_FIXED: dict[tuple[int, int], list[Step]] = {
    (_BYTE if opcode < 1 << _BYTE else _WORD, opcode): steps
    for module in _MODULES
    for opcode, steps in module.FIXED.items()
}
_DECODERS: dict[tuple[int, int], Callable[[Code], list[Step]]] = {
    _read_prefix(prefix): decode
    for module in _MODULES
    for prefix, decode in module.DECODERS.items()
}
_LENGTHS = sorted({bits for bits, _ in chain(_FIXED, _DECODERS)})


def decode(code: Code) -> tuple[list[Step], int]:
    """Return the steps of a code, and an upper bound of their gas without what they call.

    From the first unknown instruction on, the rest is one step that declines.
    """
    steps: list[Step] = []
    gas = ENTRY_GAS
    try:
        while code.bits_left:
            first, before = code.peek(_BYTE), code.bits_left
            steps += _decode_one(code)
            if first == _DICTIONARY:
                gas += _LOOK_UP_GAS
            gas += before - code.bits_left + (_LIGHT_GAS if first in _LIGHT else _GAS)
        if code.refs:
            target = code.open(code.take_ref()).jump
            steps.append(lambda _stack: target)
    except (Declined, BocError):
        steps.append(_decline)
    return steps, gas


def _decode_one(code: Code) -> list[Step]:
    for bits in _LENGTHS:
        if bits > code.bits_left:
            break
        key = bits, code.peek(bits)
        if key in _FIXED:
            code.take(bits)
            return _FIXED[key]
        if key in _DECODERS:
            code.take(bits)
            return _DECODERS[key](code)
    raise Declined("unknown instruction")


def _decline(_stack: Stack) -> None:
    raise Declined("unknown instruction")


_RESULTS = (int, Cell, CellSlice, type(None))


class Program:
    """A code whose instructions are decoded when they first run.

    Its results depend on its cells, on ``Account``, and on the arguments alone: anything that reads
    more (other configuration, time, balance, random seed, libraries) is declined.
    """

    def __init__(self, code: Cell) -> None:
        """Copy a code; raise BocError if it is an exotic cell."""
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
        """Return the stack that a run leaves, deepest value first.

        Args:
            account: Address and data; cells are built in the tree of the data.
            arguments: The initial stack; the last value is the method id.
            gas_limit: The run is declined if its upper bound of gas exceeds this.
            planted: Cells of other trees by their position in that tree; keep it as long as the
                tree.

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
            raise Declined("exotic cell, or stack underflow") from error
        if not all(isinstance(value, _RESULTS) for value in stack):
            raise Declined("unsupported values on the stack")
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
            raise Declined("may exceed the gas limit")
        if not frames:
            return
        for step in frames[-1]:
            signal = step(stack)
            if signal is not None:
                break
        else:
            signal = RETURN
