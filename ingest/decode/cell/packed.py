"""Packed cells: descriptors and data of a cell, then the handles of its children, all of one size.

A store returns cells by handle, a hash or a number. Trees may be larger than memory, so subtrees
are loaded level by level.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from tonlake.ingest.decode.cell.envelope import NATIVE
from tonlake.ingest.errors import BocError, IngestError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_core = NATIVE if hasattr(NATIVE, "decode_branch") else None
HASH_BYTES = 32


class CellStore(Protocol):
    """A store of packed cells by handle."""

    @property
    def name(self) -> str:
        """The name of the store in errors."""

    @property
    def width(self) -> int:
        """Size of a handle in bytes; a handle of ``HASH_BYTES`` is the cell's hash."""

    def fetch(self, handles: list[bytes]) -> list[bytes]:
        """Return the packed cells of ``handles``.

        Raises:
            SourceError: a cell is missing or damaged.
        """


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn errors about cells into SourceError with the name of their store."""
    try:
        yield
    except IngestError as error:
        text = str(error)
        raise SourceError(text if text.startswith(name) else f"{name}: {text}") from error


def split_packed(packed: bytes, width: int) -> tuple[bytes, list[bytes]]:
    """Return descriptors with data, and the handles of the children.

    Raises:
        BocError: ``packed`` is too short or too long.
    """
    refs = packed[0] & 7
    size = 2 + (packed[1] + 1 >> 1)
    if len(packed) != size + refs * width:
        raise BocError(f"a packed cell has {len(packed)} bytes instead of {size + refs * width}")
    return packed[:size], [packed[at : at + width] for at in range(size, len(packed), width)]


def list_below(packed: Sequence[bytes], width: int, known: set[bytes]) -> list[bytes]:
    """Return the handles of children that are not in ``known``, and add them to it."""
    if _core is not None:
        found: list[bytes] = _core.list_below(packed, width, known)
        return found
    found = []
    for cell in packed:
        for handle in split_packed(cell, width)[1]:
            if handle not in known:
                known.add(handle)
                found.append(handle)
    return found


class Loaded:
    """The cells under some roots and their handles in the same order, the roots first."""

    def __init__(self, store: CellStore, roots: Sequence[bytes], most: int | None = None) -> None:
        """Load the cells level by level; ``is_whole`` is False if there are more than ``most``."""
        self.name, self.width = store.name, store.width
        self.handles: list[bytes] = []
        self.packed: list[bytes] = []
        level = list(dict.fromkeys(roots))
        known = set(level)
        while level and (most is None or len(known) <= most):
            level.sort()
            cells = store.fetch(level)
            self.handles += level
            self.packed += cells
            level = list_below(cells, self.width, known)
        self.is_whole = not level

    def unpack(self) -> dict[bytes, tuple[bytes, list[bytes]]]:
        """Return descriptors with data, and the children's handles, by handle."""
        cells = (split_packed(each, self.width) for each in self.packed)
        return dict(zip(self.handles, cells, strict=True))
