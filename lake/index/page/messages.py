"""Pages of messages by opcode or body, over several runs."""

from __future__ import annotations

from itertools import repeat
from operator import attrgetter, ne
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.lake.index.page.merge import MOST_MERGED
from tonlake.lake.index.segment.ends import NO_LT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.lake.index.segment.postings import Postings
    from tonlake.lake.index.segment.segment import Run

Found = tuple["Run", "Postings", int, int]
"""A run, its postings, and where those of the key begin and end."""


class Wanted(NamedTuple):
    """Messages whose ``column`` has a value, and which page of them."""

    column: str
    value: object
    descending: bool
    offset: int
    limit: int


def read_messages(found: Sequence[Found], wanted: Wanted) -> list[Any] | None:
    """Return the rows of a page of messages, each once; of two ends either one.

    None where the page cannot be cut without reading too much: it is deep and several runs have
    some of it, or hashes share a key.
    """
    found = [item for item in found if item[2] < item[3]]
    first, last = wanted.offset, wanted.offset + wanted.limit
    if len(found) > 1:
        if last * len(found) > MOST_MERGED:
            return None
        first = 0
    rows: dict[bytes, Any] = {}
    for item in found:
        lines = _read_slice(item, wanted, first, last)
        if lines is None:
            return None
        if len(found) == 1:  # has each once, in this order
            return lines[::-1] if wanted.descending else lines
        for line in lines:
            rows.setdefault(line.msg_hash, line)
    page = sorted(rows.values(), key=creation_of, reverse=wanted.descending)
    return page[wanted.offset : last]


def _read_slice(item: Found, wanted: Wanted, first: int, last: int) -> list[Any] | None:
    """Return a message for each entry of one run's slice, or None if the key was another's."""
    run, postings, start, end = item
    if wanted.descending:
        slice_ = slice(max(start, end - last), max(start, end - first))
    else:
        slice_ = slice(min(end, start + first), min(end, start + last))
    places = zip(postings.rows[slice_], postings.places[slice_], strict=True)
    lines = run.read_lines(list(places))
    values = map(attrgetter(wanted.column), lines)
    return None if any(map(ne, values, repeat(wanted.value))) else lines


def creation_of(line: Any) -> tuple[int, bytes]:  # noqa: ANN401 - a MessageRow
    """Return what messages stand by: creation, those without one last, then hash."""
    return NO_LT if line.created_lt is None else line.created_lt, line.msg_hash
