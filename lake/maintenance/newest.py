"""Filters sorted rows, streamed in pieces, to the first and last row of each key."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


def keep_newest(
    pieces: Iterable[pa.Table],
    key: Sequence[str],
    is_other: Callable[[pa.Table], pa.ChunkedArray] | None = None,
) -> Iterator[pa.Table]:
    """Yield the last row of each key, and rows for which ``is_other`` holds, from sorted rows."""
    for rows, _is_first, is_last in _mark_ends(pieces, key):
        yield rows.filter(is_last if is_other is None else pc.or_(is_last, is_other(rows)))


def keep_ends(pieces: Iterable[pa.Table], key: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the first and the last row of each key from sorted rows."""
    for rows, is_first, is_last in _mark_ends(pieces, key):
        yield rows.filter(pc.or_(is_first, is_last))


def _mark_ends(
    pieces: Iterable[pa.Table], key: Sequence[str]
) -> Iterator[tuple[pa.Table, pa.Array, pa.Array]]:
    """Yield sorted rows, each with whether it is the first and the last of its key."""
    held, is_first = None, pa.array([True])
    for piece in pieces:
        # Hold back the last row until its successor is known.
        rows = piece if held is None else pa.concat_tables([held, piece])
        rows = rows.combine_chunks()
        count = rows.num_rows - 1
        head, held = rows.slice(0, count), rows.slice(count)
        differs = (pc.not_equal(head[name], rows[name].slice(1)) for name in key)
        is_last = reduce(pc.or_, differs).combine_chunks()
        begins = pa.concat_arrays([is_first, is_last])
        yield head, begins.slice(0, count), is_last
        is_first = begins.slice(count)
    if held is not None:
        yield held, is_first, pa.array([True])
