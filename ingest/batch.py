"""Decoded pieces that wait for their commit, and the rule of where it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.day import piece_day

if TYPE_CHECKING:
    from ingest.decode import Piece
    from lake.settings import Settings


class Batch:
    """Consecutive pieces of one UTC day; what they hold is counted once, as they come."""

    def __init__(self, settings: Settings) -> None:
        """Begin with none."""
        self._settings = settings
        self.pieces: list[Piece] = []
        self.day = ""
        self._rows = 0
        self._bytes = 0

    def __bool__(self) -> bool:
        """Tell whether there is anything to commit."""
        return bool(self.pieces)

    def add(self, piece: Piece) -> bool:
        """Take a piece; False, and nothing is taken, where a commit must end before it.

        An empty batch takes every piece.
        """
        day = piece_day(piece)
        rows = piece.tables["transactions"].num_rows
        size_bytes = sum(table.nbytes for table in piece.tables.values())
        if self.pieces and (
            day != self.day
            or piece.first != self.pieces[-1].last + 1
            or piece.last - self.pieces[0].first + 1 > self._settings.mc_blocks_per_commit
            or self._rows + rows > self._settings.transactions_per_commit
            or self._bytes + size_bytes > self._settings.commit_bytes
        ):
            return False
        self.pieces.append(piece)
        self.day = day
        self._rows += rows
        self._bytes += size_bytes
        return True

    def clear(self) -> None:
        """Let go of what was committed."""
        self.pieces.clear()
        self._rows = self._bytes = 0
