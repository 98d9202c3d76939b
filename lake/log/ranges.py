"""Merges, subtracts and compares ranges of masterchain blocks."""

from collections.abc import Iterable

Range = tuple[int, int]
"""First and last seqno, both included."""


def merge_ranges(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """Return the same seqnos as sorted ranges, merging those that touch."""
    merged: list[Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def subtract_ranges(ranges: Iterable[Range], covered: Iterable[Range]) -> tuple[Range, ...]:
    """Return the parts of ``ranges`` outside ``covered``, in order."""
    left = sorted(ranges)
    for first, last in covered:
        left = [
            part
            for start, end in left
            for part in ((start, min(end, first - 1)), (max(start, last + 1), end))
            if part[0] <= part[1]
        ]
    return tuple(left)


def cut_ranges(ranges: Iterable[Range], last: int) -> tuple[Range, ...]:
    """Return the parts of ``ranges`` up to ``last``."""
    return tuple((start, min(end, last)) for start, end in ranges if start <= last)


def overlaps(ranges: tuple[Range, ...], mc_range: Range) -> list[Range]:
    """Return the ``ranges`` that share a seqno with ``mc_range``."""
    return [known for known in ranges if mc_range[0] <= known[1] and known[0] <= mc_range[1]]
