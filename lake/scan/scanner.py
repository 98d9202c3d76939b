"""Runs a scan batch by batch, across new commits and undone blocks, from cursor to cursor.

The rows of a stretch of blocks are read by one statement over the files that have them, and then
put in the order of their masterchain blocks.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.duck.body_table import MESSAGE_COLUMNS, MISFITS, BodyTable, Misfits, add_table
from tonlake.lake.duck.connection import list_macros, render_macros, render_rows
from tonlake.lake.duck.engine import begin_database, lock_database
from tonlake.lake.duck.remote import describe_files
from tonlake.lake.duck.statement import join_scripts, name_root, quote_name, quote_paths
from tonlake.lake.errors import BlocksLacking, CursorRefused, LakeCorrupt, LakeError, QueryError
from tonlake.lake.file.rows import PackedRows, load_from
from tonlake.lake.log.place import list_files_between, read_place
from tonlake.lake.log.ranges import Range
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import DataFile, read_commit
from tonlake.lake.scan.plan import HEIGHT, HELD_HEIGHT, ScannedTable
from tonlake.lake.schema import MESSAGES, TABLES, Table
from tonlake.lake.settings import LakeSettings
from tonlake.lake.storage.storage import Storage

READ_VALUES = 1 << 22
"""Approximate number of values that a statement reads, of rows that pass filters or not."""

READ_ROWS = 131_072
"""Least number of rows that a statement reads: two row groups, as one at each end is read twice."""

_ORDER = ("mc_seqno", "tx_lt", "tx_workchain", "tx_account", "created_lt")
"""Sort order of a signature's rows: a transaction has at most one inbound message."""


class ScannedPart(NamedTuple):
    """Rows with their block as the first column, complete up to a masterchain block."""

    rows: pa.Table
    height: int


@lru_cache(maxsize=4)
def _open_database(settings: LakeSettings, root: str) -> duckdb.DuckDBPyConnection:
    """Return a database that reads a folder, if any, for one thread a cursor; it opens in 20 ms."""
    database = begin_database(msgspec.structs.replace(settings, duckdb_threads=1))
    database.execute("set async_threads = 1")  # the default is 8 for each database
    database.execute("set parquet_metadata_cache = false")  # each file is read once
    database.execute(render_macros(settings, list_macros(" ".join(MESSAGE_COLUMNS.values()))))
    lock_database(database, *([f"{root}/"] if root else []))
    return database


class ScanDatabase:
    """A connection for one scan, whose views have the rows of some blocks; for one thread."""

    def __init__(
        self, settings: LakeSettings, place: Path | Storage | None, *, has_bodies: bool
    ) -> None:
        """Open it, alone if it ``has_bodies``; without a place it knows only columns."""
        self.is_local = isinstance(place, Path)
        self._storage = None if isinstance(place, Path) else place
        self._root = name_root(place) if isinstance(place, Path) else ""
        self._packed = PackedRows(load_from(Path(self._root)))
        open_database = _open_database.__wrapped__ if has_bodies else _open_database
        self._connection = open_database(settings, self._root).cursor()
        self._bodies = 0

    def add_body_table(self, name: str, table: BodyTable) -> ScannedTable:
        """Create the view of a signature, or, by its name, of bodies that do not fit."""
        self.show(MESSAGES, ())
        self._bodies += 1
        misfits, view = Misfits(), f"scanned_{self._bodies}"
        add_table(self._connection, table._replace(name=view), MESSAGES.name, misfits)
        fields = {field.name.lower() for layout in table.layouts for field in layout.fields}
        if name != table.name:
            view, misfits, fields = view + MISFITS, Misfits(), set()
        named = {each: f"message_{each}" if each in fields else each for each in MESSAGE_COLUMNS}
        found = self.read(f"from {quote_name(view)} limit 0").schema
        schema = pa.schema([field for field in found if field.name != "day"])
        return ScannedTable(
            name=name,
            view=view,
            table=MESSAGES,
            known=schema,
            schema=schema,
            height=named["mc_seqno"],
            order=tuple(f"{quote_name(named[each])} nulls first" for each in _ORDER),
            addresses=frozenset(named[each] for each in ("account", "source", "destination")),
            misfits=misfits,
        )

    def show(self, table: Table, files: Sequence[DataFile], name: str = "") -> None:
        """Let the view of a table have the rows of some files, in their order."""
        name = name or table.name
        rows = render_rows(table, tuple(files), lambda _name, paths: quote_paths(self._root, paths))
        packed = [file for file in files if file.pack]
        if packed and self._storage is None:
            held = f"packed {name}"
            self._connection.register(held, self._packed.read(held, packed))
            rows = f"{rows} union all by name from {quote_name(held)}"
        if self._storage is not None and files:
            held = f"files of {name}"
            self._connection.register(held, describe_files(self._storage, table, files))
            rows = f"from {quote_name(held)}"
        text = f"create or replace temp view {quote_name(name)} as {rows}"
        self._connection.execute(join_scripts([text]))

    def read(self, text: str) -> pa.Table:
        """Return the rows of a statement."""
        return self._connection.sql(join_scripts([text])).to_arrow_table()


class ScanRows:
    """The rows that a scan returns: of one table, or of several, as a struct for each.

    Of several, a row has its block and the struct named after its table; others are NULL.
    """

    def __init__(
        self, database: ScanDatabase, tables: Sequence[ScannedTable], *, is_joint: bool
    ) -> None:
        """Take the tables, whose views are those of the database."""
        self._database, self._tables, self._is_joint = database, tables, is_joint
        self.schema = tables[0].schema
        if is_joint:
            # The struct of another table is NULL, and so are its fields.
            fields = [pa.field(HEIGHT, pa.int64(), nullable=False)]
            for each in tables:
                inner = [field.with_nullable(True) for field in each.schema]  # noqa: FBT003 - pyarrow's signature
                fields.append(pa.field(each.name, pa.struct(inner)))
            self.schema = pa.schema(fields)

    def read(self, snapshot: Snapshot, span: Range) -> Iterator[ScannedPart]:
        """Yield the rows of blocks, the last block included. Raises LakeCorrupt, QueryError."""
        joins = {join for each in self._tables for join in each.joined}
        own = [each.table for each in self._tables]
        near = [join.table for join in joins if not join.everywhere]
        for join in joins:
            if join.everywhere:
                every = list_files(snapshot, (0, snapshot.last_mc_seqno), join.table)
                self._database.show(join.table, every[join.table], join.source)
        listed = [file for files in list_files(snapshot, span, *own).values() for file in files]
        width = sum(len(each.schema) for each in self._tables)
        most = max(READ_ROWS, READ_VALUES // max(1, width))
        for stretch in cut_span(listed, span, most):
            shown = list_files(snapshot, stretch, *own, *near)
            try:
                for table, files in shown.items():
                    self._database.show(table, files)
                texts = [each.render(stretch, as_struct=self._is_joint) for each in self._tables]
                rows = self._database.read(
                    " union all by name ".join(f"({text})" for text in texts)
                )
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                self._find_damage(snapshot, shown)
                raise QueryError(str(error)) from error
            yield ScannedPart(self._arrange(rows), stretch[1])

    def _find_damage(self, snapshot: Snapshot, shown: Mapping[Table, Sequence[DataFile]]) -> None:
        """Raise LakeCorrupt if a file that a failed statement read is missing or damaged."""
        for table, files in shown.items():
            for file in files if self._database.is_local else ():
                if not (snapshot.lake_dir / file.stored).exists():
                    raise LakeCorrupt(file.path, "it is missing")
            snapshot.watch.check(table.name, always=True)

    def take_misfits(self) -> dict[str, int]:
        """Return how many bodies read since the last call do not fit their signature, by table."""
        found: dict[str, int] = {}
        for each in self._tables:
            if each.misfits is not None:
                count = sum(each.misfits.values())
                each.misfits.clear()
                found |= {each.name: count} if count else {}
        return found

    def _arrange(self, rows: pa.Table) -> pa.Table:
        """Return rows with the schema's types, in the order of their blocks."""
        heights = rows[HELD_HEIGHT].combine_chunks()
        columns = [heights] if self._is_joint else []
        columns += [rows[field.name] for field in self.schema if field.name in rows.column_names]
        arrays = [
            column.cast(field.type) for column, field in zip(columns, self.schema, strict=True)
        ]
        held = pa.schema([pa.field(HELD_HEIGHT, pa.int64()), *self.schema])
        rows = pa.Table.from_arrays([heights, *arrays], schema=held)
        if len(heights) > 1 and not pc.all(pc.less_equal(heights[:-1], heights[1:])).as_py():
            rows = rows.take(pc.sort_indices(heights))  # the sort is stable
        return rows


def list_files(snapshot: Snapshot, span: Range, *tables: Table) -> dict[Table, list[DataFile]]:
    """Return the files of each table that may have rows of some blocks, or raise LakeCorrupt."""
    found: dict[Table, list[DataFile]] = {table: [] for table in tables}
    for table in found:
        if table.name in snapshot.damaged:
            raise snapshot.damaged[table.name]
        snapshot.watch.check(table.name)
    last = max(1, span[1])  # block 0, the zero state, is with block 1
    for file in list_files_between(snapshot.state, span[0], last, *(each.name for each in found)):
        if not read_place(file.path).is_baseline:
            found[TABLES[file.table]].append(file)
    return found


def cut_span(files: Iterable[DataFile], span: Range, most: int) -> Iterator[Range]:
    """Cut blocks into stretches of which the files have about ``most`` rows."""
    changes = {span[1] + 1: 0.0}
    for file in files:
        place = read_place(file.path)
        density = file.rows / (place.last - place.first + 1)
        begin = max(place.first, span[0])
        changes[begin] = changes.get(begin, 0.0) + density
        changes[place.last + 1] = changes.get(place.last + 1, 0.0) - density
    first, at, density, rows = span[0], span[0], 0.0, 0.0
    for change in sorted(changes):
        end = min(change, span[1] + 1)
        while density * (end - at) >= most - rows:
            at = min(end, at + max(1, int((most - rows) / density)))
            yield first, at - 1
            first, rows = at, 0.0
        rows += density * (end - at)
        at, density = end, density + changes[change]
    if first <= span[1]:
        yield first, span[1]


_DIGITS = 16
_CURSOR = re.compile(rf"([0-9]{{1,12}})-([1-9][0-9]{{0,11}})-([0-9a-f]{{0,{_DIGITS}}})")
BATCH_ROWS = 65_536
"""Approximate number of rows in a batch; it ends with a masterchain block."""

BATCH_BYTES = 16 << 20
"""Approximate size of a batch in memory."""


class ScanCursor(msgspec.Struct, frozen=True):
    """All rows up to a masterchain block, as of a commit, whose digest begins with ``digest``."""

    height: int
    commit: int
    digest: str

    def __str__(self) -> str:
        """Return the text that ``parse_cursor`` reads."""
        return f"{self.height}-{self.commit}-{self.digest}"


def make_cursor(snapshot: Snapshot, height: int) -> ScanCursor:
    """Return the cursor after a masterchain block of a snapshot."""
    return ScanCursor(height, snapshot.number, snapshot.state.digest[:_DIGITS])


def parse_cursor(text: str) -> ScanCursor:
    """Parse a cursor as written by ``str``, or raise CursorRefused."""
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise CursorRefused(f"{text[:80]!r} is not a cursor of a scan, such as each batch has")
    return ScanCursor(int(match[1]), int(match[2]), match[3])


def check_cursor(cursor: ScanCursor, snapshot: Snapshot) -> None:
    """Raise CursorRefused if a cursor is of another lake, or of a later commit."""
    advice = "start again at a masterchain block, with from"
    if cursor.commit > snapshot.number:
        raise CursorRefused(
            f"cursor {cursor} is of commit {cursor.commit}, but the lake has {snapshot.number}"
            f" commits: wait for it, or {advice}"
        )
    known = snapshot.state.digest
    if cursor.commit < snapshot.number:
        try:
            known = read_commit(snapshot.lake_dir, cursor.commit)[1]
        except LakeError as error:
            raise CursorRefused(f"cursor {cursor} cannot be checked ({error}): {advice}") from error
    if known[:_DIGITS] != cursor.digest:
        raise CursorRefused(f"cursor {cursor} is of another lake: {advice}")


def find_undone(cursor: ScanCursor, snapshot: Snapshot) -> Range | None:
    """Return the masterchain blocks up to the cursor that were undone since; None if none were."""
    firsts = [
        one.first_mc_seqno
        for one in snapshot.state.undoings
        if one.commit > cursor.commit and one.first_mc_seqno <= cursor.height
    ]
    return (min(firsts), cursor.height) if firsts else None


class ScannedBatch(NamedTuple):
    """All rows of the masterchain blocks after the previous batch, up to ``cursor.height``.

    One with ``undone``, blocks removed with an abandoned fork, has none: the reader must drop their
    rows, and the scan continues before them. ``misfits`` counts bodies that do not fit, by table.
    """

    rows: pa.Table
    cursor: ScanCursor
    undone: Range | None = None
    misfits: Mapping[str, int] = {}


class Scanner:
    """Runs a scan; for one thread at a time."""

    def __init__(
        self,
        source: ScanRows,
        start: ScanCursor | int,
        last: int | None,
        open_newest: Callable[[], Snapshot],
        *,
        limit: int | None = None,
    ) -> None:
        """Start at a masterchain block or after a cursor; end after block ``last``, if any.

        ``open_newest`` returns the newest snapshot, the same object while it is. The scan ends with
        the block that reaches ``limit`` rows. Raises CursorRefused.
        """
        self.source, self.last, self._left = source, last, limit
        self._open_newest = open_newest
        self._snapshot = snapshot = open_newest()
        if isinstance(start, ScanCursor):
            check_cursor(start, snapshot)
        self.cursor = start if isinstance(start, ScanCursor) else make_cursor(snapshot, start - 1)
        self._parts: Iterator[ScannedPart] = iter(())
        self._has_cursor = isinstance(start, ScanCursor)

    @property
    def is_over(self) -> bool:
        """Whether all requested blocks or rows were read."""
        if self._left is not None and self._left <= 0:
            return True
        return self.last is not None and self.cursor.height >= self.last

    def advance(self) -> ScannedBatch | None:
        """Return the next batch; None if the scan is over, or the lake has no more blocks yet.

        A scan of no blocks returns one batch without rows, so that its reader has a cursor.
        Raises BlocksLacking: the next block is missing, or was pruned; LakeCorrupt.
        """
        newest = self._open_newest()
        if len(newest.state.undoings) != len(self._snapshot.state.undoings):
            self._parts = iter(())  # it may be about to read undone blocks
        self._snapshot = newest
        undone = find_undone(self.cursor, newest)
        if undone is not None:
            self.cursor = make_cursor(newest, undone[0] - 1)
            return ScannedBatch(self.source.schema.empty_table(), self.cursor, undone)
        try:
            return self._read_batch()
        except LakeCorrupt:
            self._parts = iter(())
            if self._open_newest() is newest:
                raise
            return self.advance()  # the file was merged and removed

    def _read_batch(self) -> ScannedBatch | None:
        has_cursor, self._has_cursor = self._has_cursor, True
        if self.is_over:  # parts beyond the limit may be left
            empty = ScannedBatch(self.source.schema.empty_table(), self.cursor)
            return None if has_cursor else empty
        part = next(self._parts, None)
        if part is None:
            span = self._find_span()
            if span is None:
                return None
            self._parts = cut_parts(self.source.read(self._snapshot, span))
            part = next(self._parts)
        rows, height = part
        if self._left is not None:
            if rows.num_rows >= self._left:
                rows, height = cut_rows(rows, self._left)
            self._left -= rows.num_rows
        self.cursor = make_cursor(self._snapshot, height)
        return ScannedBatch(rows.remove_column(0), self.cursor, misfits=self.source.take_misfits())

    def _find_span(self) -> Range | None:
        """Return the next range of blocks in the lake; None if it has none of them yet."""
        first, ranges = self.cursor.height + 1, self._snapshot.ranges
        if first > ranges[-1][1]:
            return None
        for start, end in ranges:
            if start <= max(1, first) <= end:  # the zero state comes with block 1
                return first, end if self.last is None else min(end, self.last)
        shown = ", ".join(f"{start}..{end}" for start, end in ranges)
        raise BlocksLacking(
            f"masterchain block {first} is not in the lake, which has {shown}: start and end"
            " the scan within one of these ranges"
        )


def cut_parts(parts: Iterator[ScannedPart]) -> Iterator[ScannedPart]:
    """Cut parts after masterchain blocks, so that none is much larger than a batch."""
    for part in parts:
        rows = part.rows
        while rows.num_rows > 1 and (rows.num_rows > BATCH_ROWS or rows.nbytes > BATCH_BYTES):
            most = min(BATCH_ROWS, max(1, rows.num_rows * BATCH_BYTES // max(1, rows.nbytes)))
            first, last = cut_rows(rows, most)
            if first.num_rows == rows.num_rows:
                break
            yield ScannedPart(first, last)
            rows = rows.slice(first.num_rows)
        yield ScannedPart(rows, part.height)


def cut_rows(rows: pa.Table, count: int) -> tuple[pa.Table, int]:
    """Return ``count`` rows and the rest of the last row's masterchain block, and that block."""
    heights = rows[HELD_HEIGHT]
    last: int = heights[count - 1].as_py()
    return rows.slice(0, pc.sum(pc.less_equal(heights, last)).as_py()), last
