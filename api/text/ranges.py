"""Formats ranges of masterchain blocks for error messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_RANGES = 5
"""Maximum ranges in a message; ``tonlake status`` lists all."""


def name_ranges(ranges: Sequence[tuple[int, int]]) -> str:
    """Return ranges as ``1..3, 7..9``; beyond ``MAX_RANGES`` only their number."""
    text = ", ".join(f"{first}..{last}" for first, last in ranges[:MAX_RANGES]) or "nothing"
    more = len(ranges) - MAX_RANGES
    return f"{text} and {more} more ranges" if more > 0 else text
