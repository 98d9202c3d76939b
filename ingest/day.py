"""The UTC day of masterchain blocks: no commit has two."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from ingest.chain import MASTERCHAIN
from ingest.decode import Piece

if TYPE_CHECKING:
    import pyarrow as pa


def split_by_day(piece: Piece) -> list[Piece]:
    """Cut a piece where the UTC day of its masterchain blocks changes."""
    days = _mc_days(piece)
    cuts = [at for at in range(1, len(days)) if days[at] != days[at - 1]]
    parts = []
    for start, end in zip([0, *cuts], [*cuts, len(days)], strict=True):
        first, last = piece.first + start, piece.first + end - 1
        parts.append(piece if not cuts else Piece(first, last, _rows_between(piece, first, last)))
    return parts


def piece_day(piece: Piece) -> str:
    """Return the UTC day, ``YYYY-MM-DD``, of the first masterchain block of a piece."""
    return _mc_days(piece)[0]


def _mc_days(piece: Piece) -> list[str]:
    blocks = piece.tables["blocks"].select(("workchain", "seqno", "gen_utime"))
    rows = blocks.filter(pc.equal(blocks["workchain"], MASTERCHAIN)).sort_by("seqno")
    return [f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}" for at in rows["gen_utime"].to_pylist()]


def _rows_between(piece: Piece, first: int, last: int) -> dict[str, pa.Table]:
    inside = (pc.field("mc_seqno") >= first) & (pc.field("mc_seqno") <= last)
    return {name: rows.filter(inside) for name, rows in piece.tables.items()}
