"""Days and tables of a lake that is a partial copy of another, in a file beside its log.

A lake without this file is complete. The file is written before the first commit of the copy, and
never changes.
"""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

import msgspec

from tonlake.lake.errors import TableLacking
from tonlake.lake.log.envelope import read_body
from tonlake.lake.log.place import read_place
from tonlake.lake.log.state import LOG_FOLDER
from tonlake.lake.schema import BLOCKS, TABLES

if TYPE_CHECKING:
    from pathlib import Path

SELECTION_FILE = f"{LOG_FOLDER}/selection.json"
_DAYS = re.compile(r"([0-9-]{10})?\.\.([0-9-]{10})?|([0-9-]{10})")


class Selection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """UTC days ``YYYY-MM-DD``, both ends included, and table names; None: no bound, all tables."""

    first_day: str | None = None
    last_day: str | None = None
    tables: tuple[str, ...] | None = None

    def has(self, path: str) -> bool:
        """Whether these days and tables include the data file of a path."""
        is_chosen = self.tables is None or path[: path.find("/")] in self.tables
        return is_chosen and self.has_day(read_place(path).day)

    def has_day(self, day: str) -> bool:
        """Whether a day is included."""
        return (self.first_day or "") <= day and (self.last_day is None or day <= self.last_day)

    @property
    def lacking(self) -> tuple[str, ...]:
        """The tables that are left out."""
        return () if self.tables is None else tuple(sorted(TABLES.keys() - set(self.tables)))

    def narrow(self, other: Selection) -> Selection:
        """Return the intersection of both selections."""
        last_days = [day for day in (self.last_day, other.last_day) if day is not None]
        chosen = self.tables if other.tables is None else other.tables
        if self.tables is not None and other.tables is not None:
            chosen = tuple(name for name in self.tables if name in other.tables)
        first_day = max(self.first_day or "", other.first_day or "") or None
        return Selection(first_day, min(last_days, default=None), chosen)


WHOLE = Selection()
"""Every day and table."""


def parse_days(text: str) -> tuple[str | None, str | None]:
    """Return the first and the last day of ``A..B``, ``A..``, ``..B`` or ``A``; None: no bound.

    Raises:
        ValueError: it is malformed, or a day does not exist.
    """
    match = _DAYS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a range of days: write 2026-11-01..2026-11-30")
    first, last = match[3] or match[1], match[3] or match[2]
    for day in filter(None, (first, last)):
        try:
            date.fromisoformat(day)
        except ValueError as error:
            raise ValueError(f"{day} is not a day: {error}") from error
    if first and last and first > last:
        raise ValueError(f"{text!r} ends before it begins")
    return first, last


def select_tables(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the table names, sorted, with ``blocks``: without it a lake has no ranges.

    Raises:
        ValueError: a table does not exist.
    """
    unknown = sorted(set(names) - TABLES.keys())
    if unknown:
        raise ValueError(f"there is no table {unknown[0]!r}: tonlake schema lists them")
    return tuple(sorted({*names, BLOCKS.name}))


def read_selection(lake_dir: Path) -> Selection:
    """Return the selection of a lake; ``WHOLE`` if it is not a partial copy.

    Raises:
        LakeCorrupt: the file is damaged.
    """
    if not (lake_dir / SELECTION_FILE).exists():
        return WHOLE
    return read_body(lake_dir, SELECTION_FILE, Selection)[0]


def list_lacking(lake_dir: Path) -> list[TableLacking]:
    """Return an error for each table left out of a partial copy; raises as above."""
    return [TableLacking(name) for name in read_selection(lake_dir).lacking]
