"""The base class of codecs, and the work limits of decoding a body.

Decoded values are JSON text in the shape of TON Center's: integers as decimal text, bit strings as
uppercase hexadecimal text, constructors as objects with ``@type``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from tonlake.ingest.errors import BocError, BodyError, BodyLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.decode.cell.tree import CellTree
    from tonlake.ingest.derive.body.record import Record

Value: TypeAlias = "bool | str | Object | list[Value]"
"""What the JSON of a decoded value holds."""
Object: TypeAlias = "dict[str, Value]"
Layouts: TypeAlias = "Mapping[int, Sequence[Record]]"
"""Layouts by opcode, in the order in which they are tried."""

NOTHING, SOMETHING = "nothing_from_maybe", "something_from_maybe"
"""``@type`` of ``Maybe``."""

MAX_LEVELS = 48
"""Maximum depth of cells that are decoded, including nested payloads; a list is one level."""
MAX_PAYLOADS = 10
"""Maximum nesting of payloads that are decoded, as in TON Center."""
MAX_TEXT = 2 << 20
"""Maximum characters of JSON that repeat what shared cells hold: one code cell in each of 255
messages fits, but a few crafted cells could represent 2^256 keys."""
_CELL_TRIALS = 4
_SPARE_CELLS = 1024
"""A body may visit each of its cells a few times, as layouts are tried, plus this number."""
_RAW_SHOWS = 2
_SPARE_BYTES = 4096
_SPARE_CELL_BYTES = 64
"""Raw cells may take a few times the bytes of the body, plus these: each bag has a header."""


class Work:
    """The remaining work that decoding one body may take, and the parts decoded so far.

    ``layouts`` decode payloads by opcode; ``level`` is the depth of the cell that is read,
    ``payloads`` how many more may be nested. ``limit`` names the limit that was met, if any.
    """

    __slots__ = (
        "_cells",
        "_known",
        "_raw_bytes",
        "_text",
        "layouts",
        "level",
        "limit",
        "payloads",
    )

    def __init__(self, tree: CellTree, layouts: Layouts) -> None:
        """Create the full allowance for a body in its own tree."""
        self._cells = _CELL_TRIALS * tree.count + _SPARE_CELLS
        self._raw_bytes = _RAW_SHOWS * sum(map(len, tree.cells)) + _SPARE_BYTES
        self._raw_bytes += _SPARE_CELL_BYTES * tree.count
        self._text = MAX_TEXT
        self._known: dict[object, str | BocError | BodyError] = {}
        self.layouts = layouts
        self.level = 0
        self.limit: str | None = None
        self.payloads = MAX_PAYLOADS

    def refuse(self, limit: str) -> NoReturn:
        """Raise BodyLimit, and note the limit."""
        self.limit = limit
        raise BodyLimit(limit)

    def visit(self) -> None:
        """Count one more cell; raise BodyLimit above the limit."""
        self._cells -= 1
        if self._cells < 0:
            self.refuse("the layouts visit the cells of the body too often")

    def spend(self, raw_bytes: int) -> None:
        """Count a cell that is shown raw; raise BodyLimit above the limit."""
        self._raw_bytes -= raw_bytes
        if self._raw_bytes < 0:
            self.refuse("the body shows its cells too often")

    def share(
        self, codec: Codec, tree: CellTree, cell: int, read: Callable[[CellTree, int, Work], str]
    ) -> str:
        """Return what a codec reads in a cell, which is read once however often it is shared.

        Raises:
            BocError, BodyError: the cell does not hold such a value.
            BodyLimit: the shared cells would make the text too long.
        """
        key = codec, cell, self.level, self.payloads
        known = self._known.get(key)
        if known is None:
            try:
                known = read(tree, cell, self)
            except (BocError, BodyError) as error:
                known = error
            self._known[key] = known
        elif isinstance(known, str):
            self._text -= len(known)
            if self._text < 0:
                self.refuse(f"shared cells repeat more than {MAX_TEXT:,} characters")
        if not isinstance(known, str):
            raise known
        return known


class Codec(ABC):
    """Reads one type from a slice.

    ``size`` is the number of bits and references that every value has; None if it varies.
    """

    size: tuple[int, int] | None = None

    @abstractmethod
    def decode(self, source: CellSlice, work: Work) -> str:
        """Read one value as JSON; raise BocError or BodyError if the bits do not encode one."""
