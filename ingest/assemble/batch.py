"""Decoded pieces waiting for a commit, and the limits that end it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tonlake.ingest.assemble.day import piece_day
from tonlake.lake.schema import ARROW_TYPES, TABLES

if TYPE_CHECKING:
    import pyarrow as pa

    from tonlake.ingest.decode.parallel import Piece
    from tonlake.ingest.settings import IngestSettings

TRANSACTIONS = 200_000
"""A commit is cut once it holds this many transactions."""


def measure_rows(name: str, rows: pa.Table) -> int:
    """Estimate the bytes that rows of a table take in memory.

    ``pyarrow.Table.nbytes`` asks every column for every buffer, which takes longer than to sort.
    """
    fixed_bits, loose = _split_columns(name)
    size_bytes: int = rows.num_rows * fixed_bits // 8
    for at in loose:
        size_bytes += rows.column(at).nbytes
    return size_bytes


@cache
def _split_columns(name: str) -> tuple[int, tuple[int, ...]]:
    """Return the bits of a row in columns of a fixed width, and the places of the others."""
    kinds = TABLES[name].arrow.types
    loose = tuple(at for at, kind in enumerate(kinds) if kind in _LOOSE)
    return sum(kind.bit_width for kind in kinds if kind not in _LOOSE), loose


_LOOSE = frozenset(
    ARROW_TYPES[name] for name in ("bytes", "text", "json", "hashes", "ints", "texts")
)
"""Types whose values have no width of their own."""


class Batch:
    """Consecutive pieces of one UTC day, with running totals of rows and bytes."""

    def __init__(self, settings: IngestSettings) -> None:
        """Begin with none."""
        self._settings = settings
        self.pieces: list[Piece] = []
        self.day = ""
        self._rows = 0
        self._bytes = 0

    def __bool__(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.pieces)

    def add(self, piece: Piece) -> bool:
        """Add a piece; return False, without adding it, where a commit must end before it.

        An empty batch takes every piece.
        """
        day = piece_day(piece)
        rows = piece.tables["transactions"].num_rows
        size_bytes = sum(measure_rows(*named) for named in piece.tables.items())
        if self.pieces and (
            day != self.day
            or piece.first != self.pieces[-1].last + 1
            or piece.last - self.pieces[0].first + 1 > self._settings.mc_blocks_per_commit
            or self._rows + rows > TRANSACTIONS
            or self._bytes + size_bytes > self._settings.commit_bytes
        ):
            return False
        self.pieces.append(piece)
        self.day = day
        self._rows += rows
        self._bytes += size_bytes
        return True

    def clear(self) -> None:
        """Drop the pieces, which were committed."""
        self.pieces.clear()
        self._rows = self._bytes = 0
