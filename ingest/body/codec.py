"""What every codec does, and the work one body may cost.

Values have the shape of TON Center's answers: integers as decimal text, bit strings as upper-case
hexadecimal text, constructors as objects with ``@type``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeAlias

from ingest.errors import BodyError

if TYPE_CHECKING:
    from ingest.body.raw import Raw
    from ingest.cell.build import CellBuilder
    from ingest.cell.slice import CellSlice

Value: TypeAlias = "bool | str | Raw | Object"
Object: TypeAlias = "dict[str, Value]"

MAX_CELLS = 8192
"""Most cells one body may make the decoder visit: a message has at most 8192 cells
(size limits of the network, config parameter 43), but a dictionary may visit one cell often."""
MAX_LEVELS = 48
"""Most levels of cells that are taken apart, nested payloads included."""
MAX_RAW_BYTES = 1 << 20
"""Most bytes of raw cells in one decoded body."""


class Work:
    """Counts down what one body may still cost."""

    __slots__ = ("_cells", "_raw_bytes", "level")

    def __init__(self) -> None:
        """Begin with the full allowance."""
        self._cells = MAX_CELLS
        self._raw_bytes = MAX_RAW_BYTES
        self.level = 0

    def visit(self) -> None:
        """Account for one more cell; raises BodyError when it is one too many."""
        self._cells -= 1
        if self._cells < 0:
            raise BodyError(f"body of more than {MAX_CELLS} cells")

    def enter(self) -> None:
        """Step into a cell; raises BodyError when that is one level too many."""
        self.visit()
        self.level += 1
        if self.level > MAX_LEVELS:
            raise BodyError(f"body of more than {MAX_LEVELS} levels")

    def leave(self) -> None:
        """Step back to the parent cell."""
        self.level -= 1

    def spend(self, raw_bytes: int) -> None:
        """Account for a cell that is shown raw; raises BodyError when it is one too many."""
        self._raw_bytes -= raw_bytes
        if self._raw_bytes < 0:
            raise BodyError(f"body with more than {MAX_RAW_BYTES} bytes of raw cells")


class Codec(ABC):
    """Reads one type from a slice and stores it into a builder."""

    @abstractmethod
    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read one value; raises BocError or BodyError when the bits are no such value."""

    @abstractmethod
    def encode(self, value: Value, target: CellBuilder) -> None:
        """Store one value; raises BocError or BodyError when it is no such value."""


def expect_text(value: Value) -> str:
    """Return a value that must be text."""
    if not isinstance(value, str):
        raise BodyError(f"{value!r} where text is needed")
    return value


def expect_object(value: Value, *keys: str) -> Object:
    """Return a value that must be an object with just these keys beside ``@type``."""
    if not isinstance(value, dict) or {*value, "@type"} != {*keys, "@type"}:
        raise BodyError(f"{value!r} where an object of {', '.join(keys) or 'nothing'} is needed")
    return value


def expect_number(value: Value) -> int:
    """Return an integer that must be written as decimal text."""
    text = expect_text(value)
    if not text.removeprefix("-").isdecimal():
        raise BodyError(f"{text!r} is no integer")
    return int(text)
