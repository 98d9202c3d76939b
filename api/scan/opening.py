"""Opens a scan: resolves its tables, filters and the masterchain blocks it begins and ends at."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from tonlake.api.chain.place import MASTERCHAIN_SHARD
from tonlake.api.errors import RequestInvalid
from tonlake.api.scan.filter import make_plan
from tonlake.api.scan.query import TableScan
from tonlake.api.scan.signature import make_body_rows, read_signature_tables
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.log.state import read_state
from tonlake.lake.scan.body import BodyViews
from tonlake.lake.scan.cursor import find_undone, parse_cursor
from tonlake.lake.scan.scanner import Scanner
from tonlake.lake.scan.source import HEIGHT, JointRows, TableRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.api.scan.query import Position, Scan
    from tonlake.lake.duck.body_table import BodyTable
    from tonlake.lake.scan.cursor import Cursor
    from tonlake.lake.scan.file import OpenFile
    from tonlake.lake.scan.source import RowSource
    from tonlake.lake.settings import LakeSettings
    from tonlake.queries.reader import Reader

_SNAPSHOT = "snapshot:"


MAX_VALUES = 10_000
"""Maximum values in all filters of a scan."""

MAX_TABLES = 20


def make_source(scan: Scan, settings: LakeSettings) -> RowSource:
    """Return the source of the rows of a scan.

    Raises:
        RequestInvalid: a table, column or signature is invalid, or a value does not fit its column.
    """
    if bool(scan.tables) == (scan.table is not None):
        raise RequestInvalid("a scan takes either table or tables")
    if scan.table is not None:
        tables = {scan.table: TableScan(scan.where, scan.columns)}
    elif scan.where or scan.columns:
        raise RequestInvalid("with tables, set where and columns inside each of them")
    else:
        tables = scan.tables
    chosen = [values for each in tables.values() for one in each.where for values in one.values()]
    if sum(map(len, chosen)) > MAX_VALUES:
        raise RequestInvalid(f"more than {MAX_VALUES:,} values in all filters: use several scans")
    if len(tables) > MAX_TABLES:
        raise RequestInvalid(f"more than {MAX_TABLES} tables: use several scans")
    if HEIGHT in scan.tables:
        raise RequestInvalid(f"no table may be called {HEIGHT}, which is a column of the scan")
    known = read_signature_tables(scan.signature)
    views = BodyViews(msgspec.structs.replace(settings, duckdb_threads=1)) if known else None
    sources = {name: _make_rows(name, each, known, views) for name, each in tables.items()}
    return JointRows(sources) if scan.tables else sources[scan.table or ""]


def _make_rows(
    name: str, table: TableScan, known: dict[str, BodyTable], views: BodyViews | None
) -> RowSource:
    if len(set(table.columns)) < len(table.columns):
        raise RequestInvalid("columns names a column twice")
    rows = make_body_rows(name, table, known, views) if views else None
    return rows or TableRows(make_plan(name, table.where, table.columns))


def open_scan(
    scan: Scan,
    reader: Reader,
    settings: LakeSettings,
    open_newest: Callable[[], Reader],
    open_file: OpenFile,
) -> Scanner:
    """Open a scan; ``reader`` finds the blocks of times.

    Raises:
        RequestInvalid: a table, column, value or position is invalid.
        CursorRefused: the cursor is not of this lake.
        BlocksLacking: the lake does not have the blocks.
    """
    source = make_source(scan, settings)
    if scan.cursor is not None and scan.start is not None:
        raise RequestInvalid("a scan begins at from or after cursor, not both")
    snapshot = reader.snapshot
    start: Cursor | int
    if scan.cursor is not None:
        start = parse_cursor(scan.cursor)
    elif scan.start is None:
        first = snapshot.ranges[-1][0]
        start = 0 if first == 1 else first  # the zero state comes with block 1
    else:
        start = _find_block(scan.start, reader, is_first=True)
    last = None if scan.stop is None else _find_block(scan.stop, reader, is_first=False)
    if last is None and not scan.follow:
        last = snapshot.last_mc_seqno
    if last is not None and not scan.follow and last > snapshot.last_mc_seqno:
        raise RequestInvalid(
            f"to is masterchain block {last}, but the newest in the lake is"
            f" {snapshot.last_mc_seqno}: leave it out, or wait for it with follow"
        )
    scanner = Scanner(source, start, last, open_newest, open_file, limit=scan.limit)
    height = scanner.cursor.height
    # A cursor may be past the last block because blocks were undone: the first batch reports it.
    if last is not None and height > last and find_undone(scanner.cursor, snapshot) is None:
        raise RequestInvalid(
            f"the scan begins at masterchain block {height + 1}, after its last one, {last}"
        )
    return scanner


def _find_block(position: Position, reader: Reader, *, is_first: bool) -> int:
    """Return the masterchain block of a position."""
    if isinstance(position, int):
        if position < 0:
            raise RequestInvalid(f"there is no masterchain block {position}")
        return position
    if position.startswith(_SNAPSHOT):
        number = position.removeprefix(_SNAPSHOT)
        if not number.isdecimal():
            raise RequestInvalid(f"{position[:80]!r}: in {_SNAPSHOT}N, N is a commit number")
        last = read_state(reader.snapshot.lake_dir, int(number)).ranges[-1][1]
        return last + is_first
    if position.isdecimal():
        return int(position)
    block = reader.one(
        "v3/blocks",
        workchain=MASTERCHAIN,
        shard=MASTERCHAIN_SHARD,
        end_utime=math.ceil(_read_time(position)) - 1 if is_first else int(_read_time(position)),
        limit=1,
    )
    if block is None and is_first:
        return reader.snapshot.ranges[0][0]
    if block is None:
        raise RequestInvalid(f"the lake has no block up to {position}")
    return int(block["seqno"]) + is_first


def _read_time(text: str) -> float:
    """Return Unix seconds."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise RequestInvalid(
            f"{text[:80]!r} is not a masterchain seqno, an ISO 8601 time or {_SNAPSHOT}N"
        ) from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
