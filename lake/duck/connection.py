"""Read-only DuckDB connections on one snapshot, whose views name the files of one commit."""

from __future__ import annotations

import re
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from tonlake.lake.duck.engine import DEFAULTS, begin_database, lock_database
from tonlake.lake.duck.labels import render_labels
from tonlake.lake.duck.own import add_own_views, own_folder
from tonlake.lake.duck.part import VIEWS_IN_PARTS, cut_parts, list_empty, list_unread
from tonlake.lake.duck.statement import join_scripts, name_root, quote, quote_name
from tonlake.lake.duck.tree import WORD
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.file.rows import PARTITION, PackedRows, load_from
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import DataFile
from tonlake.lake.schema import HISTORY_TABLES, SCHEMA_VERSION, TABLES, Table
from tonlake.lake.schema.column import SQL_TYPES, TX_TIME, Column
from tonlake.lake.schema.dictionary import REFERENCE_TABLES, VIEWS
from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    import duckdb
    from duckdb import DuckDBPyConnection

VIEW_NAMES = {"state_cells": "state_cell_copies"}
"""Tables whose name belongs to a derived view, and the name of the view over their files."""

DERIVED_VIEWS = (
    *("state_cells", "latest_account_states"),
    *("traced_transactions", "traced_messages", "decoded_messages"),
    *(f"latest_{table.name}" for table in HISTORY_TABLES),
)
"""Views over views. Their SQL is in ``sql/<name>.sql``; comments there describe columns that the
first view that it names does not have."""

VIEWS_OVER_VIEWS = (*DERIVED_VIEWS, *VIEWS)
"""The same, with the views for people and the macros over them."""

VIEWED_TABLES = {VIEW_NAMES.get(name, name): table for name, table in TABLES.items()}
"""Tables by the name of the view over their files."""

ALL_VIEWS = (*VIEWED_TABLES, *VIEWS_OVER_VIEWS)
"""Every view and macro over views, each after those that it reads."""


FILE_OPTIONS = f"hive_partitioning = true, hive_types = {{'{PARTITION}': date}}"
"""Options for reading the files of a view; without an explicit type, DuckDB reads the day of every
file to infer one."""

_PACKED = "packed"
"""Schema of the tables of rows in packs, and their prefix."""

_SEPARATOR = "|"
"""Separates paths; no path in the lake contains it."""

_MISSING_VIEW = re.compile(r"Table (?:Function )?with name (\w+) does not exist")
_CATALOGUE = re.compile(
    r"\b(show|duckdb_\w+|information_schema|pg_\w+|sqlite_master|query(_table)?)\b", re.IGNORECASE
)
_READING = re.compile(r"\b(from|join|describe|summarize)\b", re.IGNORECASE)
MACRO = re.compile(r"create or replace macro (\w+)\((.*?)\) as( table)?\n(.*?);\n", re.DOTALL)
_NAMED = re.compile(r"\b(?:from|join)\s+(\w+)|'(\w+)'")
_COMMENT = re.compile("--.*")
_STATEMENTS_KEPT = 1024
_LABELS = "labels"
_REFERENCES = frozenset(table.name for table in REFERENCE_TABLES)
NAMES_TAKEN = _REFERENCES.union(ALL_VIEWS)


def read_macros() -> str:
    """Return the statements that create every macro."""
    return join_scripts([read_sql(name) for name in ("macros", "query_macros", "view_macros")])


@cache
def _cut_macros() -> dict[str, str]:
    """Return the text that creates each macro, or the labels, after those that it calls."""
    basic, every = (
        {one[1]: one[0] for one in MACRO.finditer(text)}
        for text in (read_sql("macros"), read_macros())
    )
    return basic | {_LABELS: read_sql(_LABELS)} | every


@lru_cache(_STATEMENTS_KEPT)
def list_macros(statement: str | None, views: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the macros that a statement and views call, and ``labels`` if they read its tables.

    All for None, the catalogue, and what may be a misspelt macro: DuckDB suggests the nearest.
    """
    macros, statement = _cut_macros(), needs_catalogue(statement)
    named = set(WORD.findall((statement or "").lower()))
    unknown = named.difference(macros, ALL_VIEWS)
    if statement is None or any(name.startswith("ton_") for name in unknown):
        return tuple(macros)
    texts = (read_sql(view) for view in views if view in VIEWS_OVER_VIEWS)
    named.update(WORD.findall("\n".join(texts).lower()))
    for name in reversed(macros):
        if name in named or (name == _LABELS and not named.isdisjoint(_REFERENCES)):
            named |= {name, *WORD.findall(macros[name])}
    return tuple(name for name in macros if name in named)


def render_macros(settings: LakeSettings, names: Iterable[str]) -> str:
    """Return the script that creates macros and labels of ``list_macros``."""
    macros = _cut_macros()
    texts = (render_labels(settings) if name == _LABELS else macros[name] for name in names)
    return join_scripts(texts)


@cache
def read_bases(view: str) -> tuple[str, ...]:
    """Return the views that the text of a view names, as tables or as arguments of macros."""
    if view not in VIEWS_OVER_VIEWS:
        return ()
    named = (match[1] or match[2] for match in _NAMED.finditer(_COMMENT.sub("", read_sql(view))))
    return tuple(dict.fromkeys(name for name in named if name in ALL_VIEWS))


@cache
def list_bases(view: str) -> frozenset[str]:
    """Return the views over files that a view reads, at any depth; for such a view, itself."""
    bases = read_bases(view)
    return frozenset().union(*map(list_bases, bases)) if bases else frozenset({view})


@cache
def read_sql(name: str) -> str:
    """Return the content of ``lake/duck/sql/<name>.sql``."""
    return (files("tonlake.lake.duck") / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def describe_derived(view: str) -> tuple[str, tuple[Column, ...]]:
    """Return what a view of ``DERIVED_VIEWS`` is, and the columns of the first that it names."""
    lines = (line for line in read_sql(view).splitlines() if line.startswith("--"))
    doc = " ".join(line.removeprefix("--").strip() for line in lines)
    return doc, VIEWED_TABLES[read_bases(view)[0]].shown


def connect(
    snapshot: Snapshot,
    settings: LakeSettings = DEFAULTS,
    *,
    tables: Collection[str] | None = None,
    statement: str | None = None,
    spill: Path | None = None,
) -> DuckDBPyConnection:
    """Return an in-memory database with a view per sound table; use one cursor per request.

    It can open only files of these tables; ``find_damage_behind`` explains a view that lacks. As
    views and macros take time, there are those that ``statement`` needs; without one, the views
    named as ``tables``. Without a folder ``spill``, a query beyond the memory limit fails.
    """
    sound = snapshot.sound_files()
    chosen = {name: sound[name] for name in sound if tables is None or name in tables}
    connection = begin_database(settings, spill)
    root = name_root(snapshot.lake_dir)
    if statement is None and tables is not None:
        statement = " ".join(tables)
    views = choose_views(statement)
    connection.begin()  # one transaction takes less time than one per statement
    connection.execute(render_macros(settings, list_macros(statement, views)))
    connection.execute(join_scripts([f"create schema {_PACKED}"]))
    add_packed(connection, PackedRows(load_from(snapshot.lake_dir)), chosen, views, _PACKED)
    unread = list_unread(connection, statement, views)
    for script in render_views(root, chosen, views, unread=unread):
        connection.execute(script)
    connection.commit()
    if tables is None:
        add_own_views(connection, snapshot.lake_dir, settings, needs_catalogue(statement))
    # DuckDB takes 14 microseconds per entry, so allow folders rather than files.
    folders = [*(f"{root}/{name}/" for name in chosen), own_folder(snapshot.lake_dir)]
    lock_database(connection, *folders)
    return connection


def add_packed(
    connection: DuckDBPyConnection,
    packed: PackedRows,
    tables: Mapping[str, tuple[DataFile, ...]],
    views: Iterable[str],
    schema: str,
) -> None:
    """Create a table in ``schema`` for the rows in packs of each view; the views read it."""
    for name in (VIEWED_TABLES[view].name for view in views if view in VIEWED_TABLES):
        files = [file for file in tables.get(name, ()) if file.pack]
        if files:
            connection.from_arrow(packed.read(name, files)).create(f"{schema}.{_name_packed(name)}")


def choose_views(statement: str | None) -> tuple[str, ...]:
    """Return the views a statement needs: all for None, the catalogue, or no known name."""
    statement = needs_catalogue(statement)
    if statement is None:
        return ALL_VIEWS
    found = list_views(statement)
    return found if found or not _READING.search(statement) else ALL_VIEWS


def needs_catalogue(statement: str | None) -> str | None:
    """Return the statement; None, which means every view, if it reads the catalogue."""
    return None if statement is None or _CATALOGUE.search(statement) else statement


@lru_cache(_STATEMENTS_KEPT)
def list_views(statement: str) -> tuple[str, ...]:
    """Return the views that a statement names, each after those that it reads."""
    needed = set(WORD.findall(statement.lower())).intersection(ALL_VIEWS)
    for view in reversed(ALL_VIEWS):
        if view in needed:
            needed.update(read_bases(view))
    return tuple(view for view in ALL_VIEWS if view in needed)


def find_damage_behind(snapshot: Snapshot, error: duckdb.Error) -> LakeCorrupt | None:
    """Return the damage that made a query fail with ``error``; None if it was not damage."""
    missing = _MISSING_VIEW.search(str(error))
    if missing is None:
        return None
    views = list_bases(missing[1])
    tables = (name for name in snapshot.damaged if VIEW_NAMES.get(name, name) in views)
    return next((snapshot.damaged[name] for name in tables), None)


def render_views(
    root: str,
    tables: Mapping[str, tuple[DataFile, ...]],
    views: Iterable[str],
    bound: int | None = None,
    schema: str = _PACKED,
    unread: Collection[str] = (),
) -> Iterator[str]:
    """Yield scripts that create ``views``, in order, of ``tables``, up to block ``bound``, if any.

    Parts ``unread`` are left out, and parts without rows.

    DuckDB reads the names of all files, and the text, of a view when it is created, and again for
    each view over it. So a macro returns a view's files: one until all views exist, then all, in a
    script of its own, as DuckDB copies a script for each of its statements. And views over views
    are created over empty tables in their places, which cost the least. ``schema`` has the rows in
    packs.
    """
    paths: dict[str, list[str]] = {}

    def keep_paths(name: str, listed: list[str]) -> str:
        paths[f"files_of_{name}"] = listed
        return f"{quote_name(f'files_of_{name}')}()"

    known = {view: table for view, table in VIEWED_TABLES.items() if table.name in tables}
    made = [view for view in views if known.keys() >= list_bases(view)]
    empty = list_empty(tables)
    read = {base for view in made if view not in known for base in read_bases(view)}
    stand_ins = {
        view: known[view].shown if view in known else VIEWS[view].columns
        for view in made
        if view in read and view not in DERIVED_VIEWS
    }
    texts = [_render_table(view, columns) for view, columns in stand_ins.items()]
    texts += [cut_parts(read_sql(view), unread, empty) for view in made if view in DERIVED_VIEWS]
    for view in reversed([view for view in made if view not in DERIVED_VIEWS]):
        if view in stand_ins:
            texts.append(f"drop table {quote_name(view)};\n")
        if view in VIEWS:
            texts.append(cut_parts(read_sql(view), unread, empty))
        else:
            rows = render_rows(known[view], tables[known[view].name], keep_paths, bound, schema)
            texts.append(f"create or replace view {quote_name(view)} as\n{rows};\n")
    short = [_render_files(root, name, listed[:1]) for name, listed in paths.items()]
    yield join_scripts([*short, *texts])
    yield from (_render_files(root, name, listed) for name, listed in paths.items() if listed[1:])


def _render_files(root: str, name: str, paths: Iterable[str]) -> str:
    """Return the SQL of a macro that returns files; one string parses faster than a list."""
    return (
        f"create or replace macro {quote_name(name)}() as list_transform(\n"
        f"    string_split({quote(_SEPARATOR.join(paths))}, {quote(_SEPARATOR)}),\n"
        f"    lambda path: {quote(f'{root}/')} || path\n"
        ");\n"
    )


ShowPaths = Callable[[str, list[str]], str]
"""Returns the SQL expression of a list of files, given the name of the list and the paths relative
to the lake."""


def render_rows(
    table: Table,
    files: tuple[DataFile, ...],
    show_paths: ShowPaths,
    bound: int | None = None,
    schema: str = "",
) -> str:
    """Return the SQL of a table's rows, NULL in columns newer than a file; ``schema`` has packs."""
    parquet = tuple(file for file in files if not file.pack)
    sources = list(_render_sources(table, parquet, show_paths, bound))
    if schema and len(parquet) < len(files):
        packed = f"{quote_name(schema)}.{_name_packed(table.name)}"
        sources.append(f"    {select_all(table)} from {packed}{_limit(table, bound)}")
    union = " union all by name\n".join(sources)
    if all(file.schema_version == SCHEMA_VERSION for file in parquet):
        return union
    columns = ",\n".join(f"    {quote_name(column.name)}" for column in table.shown)
    return f"select\n{columns}\nfrom (\n{union}\n)"


def _render_sources(
    table: Table, files: tuple[DataFile, ...], show_paths: ShowPaths, bound: int | None
) -> Iterator[str]:
    """Yield one query per schema version; without files, one without rows but with all columns."""
    versions = dict.fromkeys(file.schema_version for file in files)
    if SCHEMA_VERSION not in versions:
        nulls = (
            f"null::{SQL_TYPES[column.type]} as {quote_name(column.name)}" for column in table.shown
        )
        yield f"    select {', '.join(nulls)} where false"
    for version in versions:
        paths = [file.path for file in files if file.schema_version == version]
        shown = show_paths(f"{table.name}_{version}", paths)
        rows = f"read_parquet({shown}, {FILE_OPTIONS})"
        yield f"    {select_all(table)} from {rows}{_limit(table, bound)}"


_TX_TIME = "make_timestamp(1000000::bigint * try_cast(now as uinteger)) as tx_time"
"""Of ``now``, which 32 bits hold. A filter on it skips row groups only directly over the files."""


def select_all(table: Table) -> str:
    """Return ``select`` with every column of a view over files."""
    return f"select *, {_TX_TIME}" if TX_TIME in table.shown else "select *"


def _render_table(name: str, columns: Iterable[Column]) -> str:
    """Return the SQL that creates an empty table."""
    listed = ", ".join(f"{quote_name(column.name)} {SQL_TYPES[column.type]}" for column in columns)
    return f"create table {quote_name(name)} ({listed});\n"


def _limit(table: Table, bound: int | None) -> str:
    return "" if bound is None else f" where {table.height} <= {bound}"


def _name_packed(table: str) -> str:
    return quote_name(f"{_PACKED}_{table}")


FORGOTTEN_KEPT = 40
"""Files of earlier snapshots that may stay cached before another database takes over.

DuckDB never frees the metadata that it caches of a file, up to 100 kB. A lake that follows a node
has dozens of new files per second, each until it is merged.
"""


class Database:
    """Opens snapshots of a lake in a shared DuckDB database, which is replaced now and then."""

    def __init__(self, lake_dir: Path, settings: LakeSettings) -> None:
        """Take the lake; nothing is opened yet."""
        self._lake_dir = lake_dir
        self._settings = settings
        self._serial = count(1)
        self._engine = Engine(lake_dir, settings)
        self._asked_s: dict[str, float] = {}

    def open(self, snapshot: Snapshot) -> SnapshotViews:
        """Return the views of a snapshot, none created yet; they are dropped once unused."""
        if self._engine.count_forgotten(snapshot) > FORGOTTEN_KEPT:
            self._engine = Engine(self._lake_dir, self._settings)
        schema = f"snapshot_{snapshot.number}_{next(self._serial)}"
        return SnapshotViews(self._engine, snapshot, schema, self._asked_s)

    def close(self) -> None:
        """Release the database; readers still using it keep it open."""
        self._engine = Engine(self._lake_dir, self._settings)


class Engine:
    """A DuckDB database that opens with the first statement and reads only the lake's folder."""

    def __init__(self, lake_dir: Path, settings: LakeSettings) -> None:
        """Take the lake; nothing is opened yet."""
        self._root = name_root(lake_dir)
        self._settings = settings
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self.released: deque[str] = deque()
        """Schemas that the next ``make_schema`` drops; finalizers add to them, without a lock."""
        self._known: dict[str, set[str]] = {}
        self._macros: set[str] = set()
        self._packed = PackedRows(load_from(lake_dir))

    def count_forgotten(self, snapshot: Snapshot) -> int:
        """Return the number of files read so far that a snapshot no longer has."""
        live = (file for table in list(self._known) for file in snapshot.files[table])
        return sum(map(len, list(self._known.values()))) - sum(not file.pack for file in live)

    def cursor(self, schema: str) -> duckdb.DuckDBPyConnection:
        """Return a connection on which a schema's views are found by their plain names."""
        with self._lock:
            cursor = self._open().cursor()
        cursor.execute(join_scripts([f"set search_path = {quote(f'{schema},main')}"]))
        return cursor

    def make_schema(self, schema: str) -> None:
        """Create a schema, and drop those without readers."""
        with self._lock:
            connection = self._open()
            while self.released:
                name = quote_name(self.released.popleft())
                connection.execute(join_scripts([f"drop schema if exists {name} cascade"]))
            connection.execute(join_scripts([f"create schema {quote_name(schema)}"]))

    def make_macros(self, statement: str, views: tuple[str, ...]) -> None:
        """Create what a statement and views call, unless it is there: all take 60 ms."""
        named = list_macros(statement, views)
        if not self._macros.issuperset(named):
            with self._lock:
                lacking = [name for name in named if name not in self._macros]
                self._open().execute(render_macros(self._settings, lacking))
                self._macros.update(lacking)

    def make_views(
        self,
        maker: DuckDBPyConnection,
        schema: str,
        snapshot: Snapshot,
        views: list[str],
        unread: Collection[str],
    ) -> None:
        """Create views of a snapshot in a schema, and note which files they read."""
        sound = snapshot.sound_files()
        for table in (VIEWED_TABLES[view].name for view in views if view in VIEWED_TABLES):
            known = self._known.setdefault(table, set())
            known.update(file.path for file in sound.get(table, ()) if not file.pack)
        maker.begin()
        try:
            add_packed(maker, self._packed, sound, views, schema)
            for script in render_views(self._root, sound, views, snapshot.bound, schema, unread):
                maker.execute(script)
        except Exception:
            maker.rollback()
            raise
        maker.commit()

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            connection = begin_database(self._settings)
            lock_database(connection, self._root)
            self._connection = connection
        return self._connection


class SnapshotViews:
    """The views of one snapshot, shared by all of its readers."""

    def __init__(
        self,
        engine: Engine,
        snapshot: Snapshot,
        schema: str,
        asked_s: dict[str, float],
        unread: tuple[str, ...] = (),
    ) -> None:
        """Create no view yet; ``asked_s`` notes when each was asked for last, of any snapshot.

        The views have no parts ``unread``.
        """
        self._unread = unread
        self._shorter: dict[tuple[str, ...], SnapshotViews] = {}
        self._engine = engine
        self._snapshot = snapshot
        self.schema = schema
        self._asked_s = asked_s
        self._lock = threading.Lock()
        self._maker: duckdb.DuckDBPyConnection | None = None
        self._idle: deque[duckdb.DuckDBPyConnection] = deque()
        self._made: set[str] = set()

    def lend(self, reader: object) -> duckdb.DuckDBPyConnection:
        """Return a connection on the snapshot, for the use of one reader as long as it exists."""
        try:
            cursor = self._idle.pop()
        except IndexError:
            with self._lock:
                self._begin()
            cursor = self._engine.cursor(self.schema)
        weakref.finalize(reader, self._idle.append, cursor).atexit = False
        return cursor

    def provide(self, statement: str, cursor: DuckDBPyConnection | None = None) -> None:
        """Create the views that a statement names, and those they read, of sound tables.

        ``cursor``, on which only this statement runs next, finds them without the parts that it
        does not read.
        """
        views = list_views(statement)
        self._asked_s.update(dict.fromkeys(views, time.monotonic()))
        if cursor is None or VIEWS_IN_PARTS.isdisjoint(views):
            self._make(views, statement)
            return
        unread = list_unread(cursor, statement, views)
        shorter = self._leave_out(unread) if unread else self
        shorter._make(views, statement)
        path = f"{shorter.schema},{self.schema},main"
        cursor.execute(join_scripts([f"set search_path = {quote(path)}"]))

    def _leave_out(self, unread: tuple[str, ...]) -> SnapshotViews:
        """Return the views of the snapshot without some parts, in a schema of their own."""
        with self._lock:
            if unread not in self._shorter:
                schema = "_".join((self.schema, "without", *unread))
                self._shorter[unread] = SnapshotViews(
                    self._engine, self._snapshot, schema, self._asked_s, unread
                )
            return self._shorter[unread]

    def provide_ahead(self, since_s: float) -> None:
        """Create the views that readers of this or earlier snapshots asked for since then."""
        asked_s = self._asked_s.copy()
        self._make(tuple(view for view in ALL_VIEWS if asked_s.get(view, since_s) > since_s))

    def _make(self, views: tuple[str, ...], statement: str = "") -> None:
        self._engine.make_macros(statement, views)
        if self._made.issuperset(views):
            return
        with self._lock:
            maker = self._begin()
            lacking = [view for view in views if view not in self._made]
            self._engine.make_views(maker, self.schema, self._snapshot, lacking, self._unread)
            self._made.update(lacking)

    def _begin(self) -> duckdb.DuckDBPyConnection:
        if self._maker is None:
            self._engine.make_schema(self.schema)
            weakref.finalize(self, self._engine.released.append, self.schema).atexit = False
            self._maker = self._engine.cursor(self.schema)
        return self._maker


@lru_cache(_STATEMENTS_KEPT)
def list_tables(statement: str) -> tuple[str, ...]:
    """Return the tables whose files a statement may read."""
    views = list_views(statement)
    return tuple(VIEWED_TABLES[view].name for view in views if view in VIEWED_TABLES)
