"""Codecs around other codecs: references, Maybe and Either."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.body.codec import Codec, Value, Work
from tonlake.ingest.derive.body.program import Op
from tonlake.ingest.errors import BodyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.derive.body.program import Program

NOTHING, SOMETHING = "nothing_from_maybe", "something_from_maybe"
FIRST, SECOND = "first_from_either", "second_from_either"
CELL_REFERENCE = "cell_reference"


class Reference(Codec):
    """``^T``: a value that fills a cell of its own."""

    op = Op.REFERENCE

    def __init__(self, inner: Codec) -> None:
        """Make the codec of a reference to one type."""
        self.inner = inner

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the value of the child, which must be used up."""
        child = source.tree.slice(source.load_ref())
        work.enter()
        value = self.inner.decode(child, work)
        work.leave()
        if child.bits_left or child.refs_left:
            raise BodyError(f"cell {child.cell} holds more than its type")
        return value

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the node inside."""
        return (program.add(self.inner),)


class Wrapped(Codec):
    """``^T`` as an argument of a type: shown inside an object ``cell_reference``."""

    op = Op.WRAPPED

    def __init__(self, inner: Codec) -> None:
        """Wrap the codec of the reference."""
        self.inner = inner

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the object."""
        return {CELL_REFERENCE: self.inner.decode(source, work)}

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the node inside."""
        return (program.add(self.inner),)


class Maybe(Codec):
    """``Maybe T``: a bit, and the value after a one."""

    op = Op.MAYBE

    def __init__(self, inner: Codec) -> None:
        """Make the codec of one optional type."""
        self.inner = inner

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the object of nothing or of something."""
        if not source.load_bit():
            return {"@type": NOTHING}
        return {"@type": SOMETHING, "value": self.inner.decode(source, work)}

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the node inside."""
        return (program.add(self.inner),)


class Either(Codec):
    """``Either X Y``: a bit, and X after a zero or Y after a one."""

    op = Op.EITHER

    def __init__(self, first: Codec, second: Codec) -> None:
        """Make the codec of two alternatives."""
        self._sides = {FIRST: first, SECOND: second}

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read the object of the first or the second alternative."""
        name = SECOND if source.load_bit() else FIRST
        return {"@type": name, "value": self._sides[name].decode(source, work)}

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the nodes of both sides."""
        return [program.add(side) for side in self._sides.values()]


class Chunks(Codec):
    """A list in a chain of cells: ``Maybe ^chunk``, where a chunk is ``Maybe ^next`` and items.

    Source: the bulk request of the Telegram wallet.
    """

    op = Op.CHUNKS

    def __init__(self, inner: Codec) -> None:
        """Make the codec of a list of one type."""
        self.inner = inner

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read a list of the items of all chunks."""
        items: list[Value] = []
        following = source.load_maybe_ref()
        while following is not None:
            chunk = source.tree.slice(following)
            work.visit()
            following = chunk.load_maybe_ref()
            while chunk.bits_left or chunk.refs_left:
                work.enter()
                items.append(self.inner.decode(chunk, work))
                work.leave()
        return items

    def arguments(self, program: Program) -> Sequence[int]:
        """Return the node inside."""
        return (program.add(self.inner),)
