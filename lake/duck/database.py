"""One DuckDB database for all snapshots of a lake that a process has open.

Every snapshot has its own schema, whose views name the snapshot's files, so its readers never see
those of another. A view is created when a statement first names it, because each takes
milliseconds and a lake that follows a node has several new snapshots per second. The metadata that
DuckDB caches of a file serves every snapshot with that file.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Protocol

from tonlake.lake.duck.connection import VIEWED_TABLES, list_views, read_macros, render_views
from tonlake.lake.duck.engine import begin_database, lock_database
from tonlake.lake.duck.labels import render_labels
from tonlake.lake.duck.statement import Name, fill_statement, name_root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.settings import LakeSettings

_STATEMENTS_KEPT = 1024

FORGOTTEN_KEPT = 40
"""Files of earlier snapshots that may stay cached before another database takes over.

DuckDB never frees the metadata that it caches of a file, up to 100 kB. A lake that follows a node
has dozens of new files per second, each until it is merged.
"""


class Views(Protocol):
    """The views of one snapshot, shared by all of its readers."""

    def lend(self, reader: object) -> duckdb.DuckDBPyConnection:
        """Return a connection on the snapshot, for the use of one reader as long as it exists."""

    def provide(self, statement: str) -> None:
        """Create the views that a statement names, unless they exist."""


class Database:
    """Opens snapshots of a lake in a shared DuckDB database, which is replaced now and then."""

    def __init__(self, lake_dir: Path, settings: LakeSettings) -> None:
        """Take the lake; nothing is opened yet."""
        self._lake_dir = lake_dir
        self._settings = settings
        self._serial = count(1)
        self._engine = Engine(lake_dir, settings)

    def open(self, snapshot: Snapshot) -> SnapshotViews:
        """Return the views of a snapshot, none created yet; they are dropped once unused."""
        if self._engine.count_forgotten(snapshot) > FORGOTTEN_KEPT:
            self._engine = Engine(self._lake_dir, self._settings)
        schema = f"snapshot_{snapshot.number}_{next(self._serial)}"
        return SnapshotViews(self._engine, snapshot, schema)

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
        self._released: deque[str] = deque()
        self._known: dict[str, set[str]] = {}

    def count_forgotten(self, snapshot: Snapshot) -> int:
        """Return the number of files read so far that a snapshot no longer has."""
        known = dict(self._known)
        return sum(len(paths) - len(snapshot.files[table]) for table, paths in known.items())

    def cursor(self, schema: str) -> duckdb.DuckDBPyConnection:
        """Return a connection on which a schema's views are found by their plain names."""
        with self._lock:
            cursor = self._open().cursor()
        cursor.execute(fill_statement("set search_path = {path}", path=f"{schema},main"))
        return cursor

    def make_schema(self, schema: str) -> None:
        """Create a schema, and drop those without readers."""
        with self._lock:
            connection = self._open()
            while self._released:
                released = Name(self._released.popleft())
                connection.execute(
                    fill_statement("drop schema if exists {schema} cascade", schema=released)
                )
            connection.execute(fill_statement("create schema {schema}", schema=Name(schema)))

    def release(self, schema: str) -> None:
        """Let the next ``make_schema`` drop this schema; never blocks, as finalizers call it."""
        self._released.append(schema)

    def render(self, snapshot: Snapshot, views: list[str]) -> Iterator[str]:
        """Return scripts that create views of a snapshot, and note which files they read."""
        sound = snapshot.sound_files()
        for table in (VIEWED_TABLES[view].name for view in views if view in VIEWED_TABLES):
            known = self._known.setdefault(table, set())
            known.update(file.path for file in sound.get(table, ()))
        return render_views(self._root, sound, views, snapshot.bound)

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            connection = begin_database(self._settings)
            connection.execute(read_macros())
            connection.execute(render_labels(self._settings))
            connection.execute("set allowed_directories = $paths", {"paths": [self._root]})
            lock_database(connection)
            self._connection = connection
        return self._connection


class SnapshotViews:
    """The views of one snapshot, shared by all of its readers."""

    def __init__(self, engine: Engine, snapshot: Snapshot, schema: str) -> None:
        """Create nothing yet; use ``Database.open`` to get one."""
        self._engine = engine
        self._snapshot = snapshot
        self._schema = schema
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
            cursor = self._engine.cursor(self._schema)
        weakref.finalize(reader, self._idle.append, cursor).atexit = False
        return cursor

    def provide(self, statement: str) -> None:
        """Create the views that a statement names, and those that they read.

        A damaged table has no view, so that the statement fails (``find_damage_behind``).
        """
        views = list_views(statement)
        if self._made.issuperset(views):
            return
        with self._lock:
            maker = self._begin()
            lacking = [view for view in views if view not in self._made]
            for script in self._engine.render(self._snapshot, lacking):
                maker.execute(script)
            self._made.update(lacking)

    def _begin(self) -> duckdb.DuckDBPyConnection:
        if self._maker is None:
            self._engine.make_schema(self._schema)
            weakref.finalize(self, self._engine.release, self._schema).atexit = False
            self._maker = self._engine.cursor(self._schema)
        return self._maker


@lru_cache(_STATEMENTS_KEPT)
def list_tables(statement: str) -> tuple[str, ...]:
    """Return the tables whose files a statement may read."""
    views = list_views(statement)
    return tuple(VIEWED_TABLES[view].name for view in views if view in VIEWED_TABLES)
