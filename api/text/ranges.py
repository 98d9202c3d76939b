"""Ranges of masterchain blocks in messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_RANGES = 5
"""Ranges that a message names; ``tonlake status`` lists all."""


def name_ranges(ranges: Sequence[tuple[int, int]]) -> str:
    """Return ranges as ``1..3, 7..9``; of many, the first ones and how many more there are."""
    text = ", ".join(f"{first}..{last}" for first, last in ranges[:MOST_RANGES]) or "nothing"
    more = len(ranges) - MOST_RANGES
    return f"{text} and {more} more ranges" if more > 0 else text
