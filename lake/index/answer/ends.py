"""Reads both ends of messages as Arrow rows, given the one end that postings have."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from tonlake.lake.schema import MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tonlake.lake.index.segment.segment import Segment
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.schema import Table

CHUNK_MESSAGES = 8_192
"""Approximate number of messages read at a time."""

Place = TypeVar("Place", bound=tuple[Any, ...])
Places = Sequence[tuple[int, int | bytes]]
"""Rows of a segment, each with the place of a message in its record, or its hash."""

_End = tuple[int, int, int, bytes]
"""Masterchain block, number of the segment, row, and hash of the message."""


def read_ends(
    segments: Sequence[Segment],
    columns: Sequence[str],
    lists: Sequence[tuple[Segment, Places]],
    span: Range,
) -> Iterator[tuple[pa.Table, int]]:
    """Yield both ends of the messages in postings, and no others."""
    found = _place_ends(segments, lists)
    placed = sorted(((*end[:3], key) for end, key in found.items()), key=itemgetter(0))
    places = [place for place in placed if span[0] <= place[0] <= span[1]]
    names = [*dict.fromkeys((*columns, "mc_seqno", *MESSAGES.sort))]
    for chunk in cut_chunks(places, CHUNK_MESSAGES):
        rows = [
            segment.read_columns([(row, key) for _, at, row, key in chunk if at == number], names)
            for number, segment in enumerate(segments)
        ]
        yield sort_rows(MESSAGES, pa.concat_tables(rows)).select(columns), chunk[-1][0]


def _place_ends(
    segments: Sequence[Segment], lists: Sequence[tuple[Segment, Places]]
) -> dict[_End, int | bytes]:
    """Return the messages at some places, and where their other ends may be.

    An end found through two segments is returned once.
    """
    found: dict[_End, int | bytes] = {}
    hashes: list[bytes] = []
    times: list[int] = []
    for segment, lines in lists:
        number = segments.index(segment)
        own = segment.read_columns(lines, ["msg_hash"])["msg_hash"].to_pylist()
        for (row, place), msg_hash in zip(lines, own, strict=True):
            found[segment.mc_seqno[row], number, row, msg_hash] = place
            times.append(segment.lt[row])
        hashes += own
    for number, segment in enumerate(segments):
        for at, row in segment.message.find_others(segment.lt, hashes, times):
            end = segment.mc_seqno[row], number, row, hashes[at]
            found.setdefault(end, hashes[at])
    return found


def cut_chunks(places: Sequence[Place], size: int) -> Iterator[Sequence[Place]]:
    """Yield places, sorted by masterchain block, in chunks that end with a block."""
    start = 0
    while start < len(places):
        end = min(len(places), start + size)
        while end < len(places) and places[end][0] == places[end - 1][0]:
            end += 1
        yield places[start:end]
        start = end


def sort_rows(table: Table, rows: pa.Table) -> pa.Table:
    """Return rows in chain order."""
    order = dict.fromkeys(("mc_seqno", *table.sort))
    return rows.sort_by([(name, "ascending") for name in order])
