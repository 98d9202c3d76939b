"""Plain Python reference for postings, compared with the extension's output."""

from __future__ import annotations

from array import array
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tonlake.lake.index.segment.file import SegmentWriter


def list_postings(
    columns: Mapping[str, Sequence[int]], unique: Sequence[str], cut_bits: int
) -> list[dict[str, int]]:
    """Return the rows of a table as postings store them, with truncated keys."""
    names = list(columns)
    cut = {**columns, "key": [key >> cut_bits for key in columns["key"]]}
    same = itemgetter(*(names.index(name) for name in ("key", *unique)))
    found: list[tuple[int, ...]] = []
    for row in sorted(zip(*cut.values(), strict=True)):
        if not found or same(row) != same(found[-1]):
            found.append(row)
    return [dict(zip(names, row, strict=True)) for row in found]


def count_equal_bits(keys: Sequence[int]) -> int:
    """Return how many of the low 64 bits can be cut off while different keys still differ."""
    return next(bits for bits in range(64, -1, -1) if _differ(keys, bits))


def _differ(keys: Sequence[int], cut_bits: int) -> bool:
    return len({key >> cut_bits for key in keys}) == len(set(keys))


def cut_hash(value: bytes) -> int:
    return int.from_bytes(value[:8], "big")


def count_cut_bits(count: int, spare_bits: int = 8) -> int:
    return 64 - max(24, count.bit_length() + spare_bits)


def write_keys(writer: SegmentWriter, name: str, keys: Sequence[int]) -> None:
    cut_bits = count_cut_bits(len(keys))
    cut = array("q", (key >> cut_bits for key in keys))
    writer.add_numbers(name, cut, cut_bits, shortest=True)


def write_postings(
    writer: SegmentWriter,
    name: str,
    names: Sequence[str],
    rows: Iterable[tuple[int, ...]],
    unique: Sequence[str] = ("row",),
    *,
    hashed: bool = False,
    apart: bool = False,
) -> None:
    """Write the arrays of postings; see ``tonlake.lake.index.segment.postings``."""
    listed = list(zip(*rows, strict=True)) or [()] * len(names)
    columns = dict(zip(names, listed, strict=True))
    cut_bits = count_cut_bits(len(columns["key"]), 16 if apart else 8) if hashed else 0
    if apart:
        cut_bits = min(cut_bits, max(1, count_equal_bits(columns["key"])))
    found = list_postings(columns, unique, cut_bits)
    ends = {row["key"]: at for at, row in enumerate(found, 1)}
    arrays = {"key": [row["key"] for row in found]}
    if len(found) - len(ends) > len(found) / 3:
        arrays = {"key": list(ends), "end": list(ends.values())}
    arrays |= {name: [row[name] for row in found] for name in ("row", "place") if name in names}
    for column, numbers in arrays.items():
        cut = cut_bits if column == "key" else 0
        shortest = column in ("key", "end")
        writer.add_numbers(f"{name}.{column}", array("q", numbers), cut, shortest=shortest)
