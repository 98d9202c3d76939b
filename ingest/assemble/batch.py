"""Decodes chunks of masterchain blocks to pieces, rows of all tables, and collects these.

If a chunk contains a bad block, it is decoded again in smaller parts: all other blocks are kept,
and the bad one becomes a Hole. Pieces are collected for a commit, up to its limits; a commit is
within one UTC day.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple

from tonlake.ingest.blocks import McBundle
from tonlake.ingest.decode.block.block import decode_bundles
from tonlake.ingest.decode.rows import make_table
from tonlake.ingest.errors import IngestError
from tonlake.ingest.settings import IngestSettings
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.file.rows import keep_rows
from tonlake.lake.schema import ARROW_TYPES, BLOCK_PROOFS, TABLES


def list_proofs(bundles: Sequence[McBundle]) -> pa.Table:
    """Return the proofs of blocks, unchanged, as rows of ``block_proofs``."""
    rows = [
        (*astuple(raw.id)[:3], bundle.mc_seqno, raw.proof, raw.mc_extra)
        for bundle in bundles
        for raw in bundle.blocks
        if raw.proof is not None
    ]
    return make_table(BLOCK_PROOFS, rows)


class Hole(msgspec.Struct, frozen=True):
    """A masterchain block that could not be read or decoded, and why."""

    mc_seqno: int
    kind: str
    reason: str


class Piece(msgspec.Struct, frozen=True):
    """Rows of all base and side tables for the masterchain blocks ``first`` to ``last``."""

    first: int
    last: int
    tables: dict[str, Any]


def decode_chunk(bundles: Sequence[McBundle]) -> list[Piece | Hole]:
    """Decode consecutive masterchain blocks; a bad one is a Hole between two pieces."""
    try:
        tables = decode_bundles(bundles) | {BLOCK_PROOFS.name: list_proofs(bundles)}
        return [Piece(bundles[0].mc_seqno, bundles[-1].mc_seqno, tables)]
    except IngestError as error:
        if len(bundles) == 1:
            return [Hole(bundles[0].mc_seqno, type(error).__name__, str(error))]
    middle = len(bundles) // 2
    return decode_chunk(bundles[:middle]) + decode_chunk(bundles[middle:])


def take_blocks(tables: Mapping[str, pa.Table], first: int, last: int) -> dict[str, pa.Table]:
    """Return the rows of some masterchain blocks; the zero state comes with block 1."""
    lowest = 0 if first == 1 else first
    found = {}
    for name, rows in tables.items():
        block = rows["mc_seqno"]
        inside = pc.and_(pc.greater_equal(block, lowest), pc.less_equal(block, last))
        found[name] = keep_rows(rows, inside)
    return found


def join_tables(pieces: Sequence[Piece]) -> dict[str, pa.Table]:
    """Concatenate the tables of consecutive pieces; state cells may be repeated."""
    if len(pieces) == 1:
        return dict(pieces[0].tables)
    names = pieces[0].tables
    return {name: pa.concat_tables([piece.tables[name] for piece in pieces]) for name in names}


DAY_S = 86_400


def split_by_day(piece: Piece) -> list[Piece]:
    """Split a piece where the UTC day of its masterchain blocks changes."""
    days = _mc_days(piece)
    cuts = [at for at in range(1, len(days)) if days[at] != days[at - 1]]
    parts = []
    for start, end in zip([0, *cuts], [*cuts, len(days)], strict=True):
        first, last = piece.first + start, piece.first + end - 1
        tables = take_blocks(piece.tables, first, last) if cuts else piece.tables
        parts.append(Piece(first, last, tables))
    return parts


def piece_day(piece: Piece) -> str:
    """Return the UTC day (``YYYY-MM-DD``) of the first masterchain block of a piece."""
    return f"{datetime.fromtimestamp(_mc_days(piece)[0] * DAY_S, UTC):%Y-%m-%d}"


def _mc_days(piece: Piece) -> list[int]:
    """Return the UTC day of each masterchain block, in days since 1970."""
    blocks = piece.tables["blocks"]
    is_mc = blocks["workchain"].to_numpy() == MASTERCHAIN
    seqnos, utimes = (blocks[name].to_numpy()[is_mc] for name in ("seqno", "gen_utime"))
    days: list[int] = (utimes[np.argsort(seqnos)] // DAY_S).tolist()
    return days


TRANSACTIONS = 65_536
"""Most transactions of a commit, as many as in a row group: memory grows with them, and other
processes read the next blocks while a commit is derived."""


def measure_rows(name: str, rows: pa.Table) -> int:
    """Estimate the memory of a table's rows, in bytes; ``nbytes`` takes longer than to sort."""
    if not rows.num_rows:
        return 0
    fixed_bits, loose = _split_columns(name)
    size_bytes: int = rows.num_rows * fixed_bits // 8
    for at in loose:
        size_bytes += rows.column(at).nbytes
    return size_bytes


def measure_piece(piece: Piece) -> int:
    """Estimate the memory of all rows of a piece, in bytes."""
    return sum(measure_rows(*named) for named in piece.tables.items())


@cache
def _split_columns(name: str) -> tuple[int, tuple[int, ...]]:
    """Return the bits per row of all fixed-width columns, and the positions of the others."""
    kinds = TABLES[name].arrow.types
    loose = tuple(at for at, kind in enumerate(kinds) if kind in _LOOSE)
    return sum(kind.bit_width for kind in kinds if kind not in _LOOSE), loose


_LOOSE = frozenset(
    ARROW_TYPES[name] for name in ("bytes", "text", "json", "hashes", "ints", "texts")
)
"""Types of variable width."""


class Batch:
    """Consecutive pieces of one UTC day, with total numbers of rows and bytes."""

    def __init__(self, settings: IngestSettings) -> None:
        self._settings = settings
        self.pieces: list[Piece] = []
        self.day = ""
        self._rows = 0
        self._bytes = 0

    def __bool__(self) -> bool:
        """Return whether there is anything to commit."""
        return bool(self.pieces)

    def add(self, piece: Piece) -> bool:
        """Add a piece; return False, without adding it, if the commit must end before it."""
        day = piece_day(piece)
        rows = piece.tables["transactions"].num_rows
        size_bytes = 0
        if self.pieces:  # the first piece is taken whatever its size, and is often the only one
            self._bytes = self._bytes or measure_piece(self.pieces[0])
            size_bytes = measure_piece(piece)
            if (
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
        """Drop the pieces after their commit."""
        self.pieces.clear()
        self._rows = self._bytes = 0
