"""Postings listed in plain Python: what the extension writes is compared with this."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def list_postings(
    columns: Mapping[str, Sequence[int]], unique: Sequence[str], cut_bits: int
) -> list[dict[str, int]]:
    """Return the rows of a table as postings have them, their keys cut."""
    names = list(columns)
    cut = {**columns, "key": [key >> cut_bits for key in columns["key"]]}
    same = itemgetter(*(names.index(name) for name in ("key", *unique)))
    found: list[tuple[int, ...]] = []
    for row in sorted(zip(*cut.values(), strict=True)):
        if not found or same(row) != same(found[-1]):
            found.append(row)
    return [dict(zip(names, row, strict=True)) for row in found]


def count_equal_bits(keys: Sequence[int]) -> int:
    """Return how many of the last of 64 bits can be cut off, and different keys still differ."""
    return next(bits for bits in range(64, -1, -1) if _differ(keys, bits))


def _differ(keys: Sequence[int], cut_bits: int) -> bool:
    return len({key >> cut_bits for key in keys}) == len(set(keys))
