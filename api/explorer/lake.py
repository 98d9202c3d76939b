"""The page about the lake itself: what it covers, how large it is, how far it is behind."""

from __future__ import annotations

import re
import time
from collections import Counter
from datetime import date
from typing import TYPE_CHECKING

import msgspec

from tonlake.api.explorer import chart
from tonlake.api.explorer.block import read_latest
from tonlake.api.explorer.frame import Question, Shown
from tonlake.lake.command.status import read_status
from tonlake.lake.log.state import read_commit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tonlake.lake.command.status import Status
    from tonlake.lake.log.state import DataFile

_DAY = re.compile(r"/day=([0-9]{4}-[0-9]{2}-[0-9]{2})/")
PERCENT = 100


class TableBar(msgspec.Struct, frozen=True):
    """The size of a table, and how it compares with the largest, in percent."""

    name: str
    rows: int
    bytes: int
    percent: float


def show_lake(question: Question) -> Shown:
    """Show what the lake covers, its tables by size, and its lag."""
    snapshot = question.call.reader.snapshot
    status = read_status(snapshot, read_commit(snapshot.lake_dir, snapshot.number)[0])
    newest = read_latest(question.call.reader, 1)
    values = {
        "status": status,
        "lag": time.time() - newest[0]["utime"] if newest else None,
        "newest_utime": newest[0]["utime"] if newest else None,
        "calendar": chart.fill_calendar(count_days(snapshot.files["transactions"])),
        "tables": compare_tables(status),
        "empty": sorted(name for name, table in status.tables.items() if not table.rows),
        "damaged": {name: str(error) for name, error in snapshot.damaged.items()},
    }
    return Shown("lake.html", "The lake", values)


def count_days(files: Iterable[DataFile]) -> dict[date, int]:
    """Return the rows of files by the day in their paths (UTC)."""
    rows: Counter[date] = Counter()
    for file in files:
        if match := _DAY.search(file.path):
            rows[date.fromisoformat(match[1])] += file.rows
    return dict(rows)


def compare_tables(status: Status) -> list[TableBar]:
    """Return the tables that have rows, the largest first."""
    most = max((table.bytes for table in status.tables.values()), default=0)
    bars = [
        TableBar(name, table.rows, table.bytes, round(PERCENT * table.bytes / most, 2))
        for name, table in status.tables.items()
        if table.rows
    ]
    return sorted(bars, key=lambda bar: -bar.bytes)
