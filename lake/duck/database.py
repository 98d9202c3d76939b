"""One DuckDB for all snapshots of a lake that a process has open at once.

Every snapshot has a schema of its own in it, whose views name the snapshot's files; so readers of
one never see those of another. A view is made when the first statement asks for it, as each takes
milliseconds, and a lake that follows a node has a new snapshot several times a second. What
DuckDB remembers of the insides of a file serves every snapshot that has the file.
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
from tonlake.lake.duck.root import name_root
from tonlake.lake.duck.statement import Name, fill_statement

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.settings import LakeSettings

_STATEMENTS_KEPT = 1024

FORGOTTEN_KEPT = 40
"""Files that snapshots had and the newest has not, before another DuckDB takes over.

What it remembers of a file's insides, up to 100 kB, it never gives back; a lake that follows a
node has dozens of new files a second, each for as long as it is not merged.
"""


class Views(Protocol):
    """The views of one snapshot, for all of its readers."""

    def lend(self, reader: object) -> duckdb.DuckDBPyConnection:
        """Return a connection on the snapshot, for one reader alone as long as it is there."""

    def provide(self, statement: str) -> None:
        """Make the views that a statement names, unless they are there."""


class Database:
    """Opens snapshots of a lake on a DuckDB that they share, a new one now and then."""

    def __init__(self, lake_dir: Path, settings: LakeSettings) -> None:
        """Take the lake; nothing is opened yet."""
        self._lake_dir = lake_dir
        self._settings = settings
        self._serial = count(1)
        self._engine = Engine(lake_dir, settings)

    def open(self, snapshot: Snapshot) -> SnapshotViews:
        """Return the views of a snapshot, none of them made yet; unused, they are gone again."""
        if self._engine.count_forgotten(snapshot) > FORGOTTEN_KEPT:
            self._engine = Engine(self._lake_dir, self._settings)
        schema = f"snapshot_{snapshot.number}_{next(self._serial)}"
        return SnapshotViews(self._engine, snapshot, schema)

    def close(self) -> None:
        """Release the database; readers that are still at work keep it."""
        self._engine = Engine(self._lake_dir, self._settings)


class Engine:
    """A DuckDB that opens with the first statement, and can read the lake's folder alone."""

    def __init__(self, lake_dir: Path, settings: LakeSettings) -> None:
        """Take the lake; nothing is opened yet."""
        self._root = name_root(lake_dir)
        self._settings = settings
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._released: deque[str] = deque()
        self._known: dict[str, set[str]] = {}

    def count_forgotten(self, snapshot: Snapshot) -> int:
        """Return how many files it has read that a snapshot does not have any more."""
        known = dict(self._known)
        return sum(len(paths) - len(snapshot.files[table]) for table, paths in known.items())

    def cursor(self, schema: str) -> duckdb.DuckDBPyConnection:
        """Return a connection to which the views of a schema are the tables."""
        with self._lock:
            cursor = self._open().cursor()
        cursor.execute(fill_statement("set search_path = {path}", path=f"{schema},main"))
        return cursor

    def make_schema(self, schema: str) -> None:
        """Make a schema, and drop those without readers."""
        with self._lock:
            connection = self._open()
            while self._released:
                released = Name(self._released.popleft())
                connection.execute(
                    fill_statement("drop schema if exists {schema} cascade", schema=released)
                )
            connection.execute(fill_statement("create schema {schema}", schema=Name(schema)))

    def release(self, schema: str) -> None:
        """Let the next schema drop this one; called by finalizers, so it waits for nothing."""
        self._released.append(schema)

    def render(self, snapshot: Snapshot, views: list[str]) -> Iterator[str]:
        """Return scripts that make views of a snapshot, whose files are going to be read."""
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
    """The views of one snapshot, for all of its readers."""

    def __init__(self, engine: Engine, snapshot: Snapshot, schema: str) -> None:
        """Make nothing yet; ``Database.open`` is the way to get one."""
        self._engine = engine
        self._snapshot = snapshot
        self._schema = schema
        self._lock = threading.Lock()
        self._maker: duckdb.DuckDBPyConnection | None = None
        self._idle: deque[duckdb.DuckDBPyConnection] = deque()
        self._made: set[str] = set()

    def lend(self, reader: object) -> duckdb.DuckDBPyConnection:
        """Return a connection on the snapshot, for one reader alone as long as it is there."""
        try:
            cursor = self._idle.pop()
        except IndexError:
            with self._lock:
                self._begin()
            cursor = self._engine.cursor(self._schema)
        weakref.finalize(reader, self._idle.append, cursor).atexit = False
        return cursor

    def provide(self, statement: str) -> None:
        """Make the views that a statement names, and those that they are made of.

        A damaged table has none, so that the statement fails (``find_damage_behind``).
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
