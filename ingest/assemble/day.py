"""The UTC day of masterchain blocks: no commit has two."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from tonlake.ingest.assemble.chain import list_masterchain
from tonlake.ingest.decode.parallel import Piece

if TYPE_CHECKING:
    import pyarrow as pa


DAY_S = 86_400


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
    times = sorted(list_masterchain(piece.tables["blocks"], ("seqno", "gen_utime")))
    return [_name_day(utime // DAY_S) for _seqno, utime in times]


@lru_cache
def _name_day(number: int) -> str:
    return f"{datetime.fromtimestamp(number * DAY_S, UTC):%Y-%m-%d}"


def _rows_between(piece: Piece, first: int, last: int) -> dict[str, pa.Table]:
    inside = (pc.field("mc_seqno") >= first) & (pc.field("mc_seqno") <= last)
    return {name: rows.filter(inside) for name, rows in piece.tables.items()}
