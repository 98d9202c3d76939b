"""Packed cells: descriptors and data of a cell, then the handles of its children, all as long.

A store gives cells by handle: by hash, or by number. Trees may be larger than memory, so they are
loaded from a cell down, level by level.
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
    """Gives packed cells by handle."""

    @property
    def name(self) -> str:
        """What it is called in errors."""

    @property
    def width(self) -> int:
        """Bytes of a handle; one of ``HASH_BYTES`` is the cell's hash."""

    def fetch(self, handles: list[bytes]) -> list[bytes]:
        """Return a packed cell for each handle.

        Raises:
            SourceError: one is missing or damaged.
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
        BocError: it is too short or too long.
    """
    refs = packed[0] & 7
    size = 2 + (packed[1] + 1 >> 1)
    if len(packed) != size + refs * width:
        raise BocError(f"a packed cell of {len(packed)} bytes, which says {size + refs * width}")
    return packed[:size], [packed[at : at + width] for at in range(size, len(packed), width)]


def list_below(packed: Sequence[bytes], width: int, known: set[bytes]) -> list[bytes]:
    """Return the handles of children that are not known; they are added to the known ones."""
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
    """Cells under some roots, with their handles in the same order, the roots first."""

    def __init__(self, store: CellStore, roots: Sequence[bytes], most: int | None = None) -> None:
        """Load them; ``is_whole`` says whether there were no more than ``most`` cells."""
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
        """Return descriptors with data, and handles of children, by handle."""
        cells = (split_packed(each, self.width) for each in self.packed)
        return dict(zip(self.handles, cells, strict=True))
