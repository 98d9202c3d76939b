"""One DuckDB for all snapshots of a lake that a process has open at once.

Every snapshot has a schema of its own in it, whose views name the snapshot's files; so readers of
one never see those of another. A view is made when the first statement asks for it, as each takes
milliseconds, and a lake that follows a node has a new snapshot several times a second. What
DuckDB remembers of the insides of a file serves every snapshot that has the file.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections import deque
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING

from lake.connection import (
    ALL_VIEWS,
    DERIVED_VIEWS,
    begin_database,
    lock_database,
    quote,
    read_sql,
    render_views,
)

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from lake.settings import Settings
    from lake.snapshot import Snapshot

_WORD = re.compile(r"\w+")
_STATEMENTS_KEPT = 1024


class Database:
    """A DuckDB that is begun with the first statement, and reaches the lake's folder alone."""

    def __init__(self, lake_dir: Path, settings: Settings) -> None:
        """Take the lake; nothing is opened yet."""
        self._root = lake_dir.absolute()
        self._settings = settings
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._serial = count(1)
        self._released: deque[str] = deque()

    def open(self, snapshot: Snapshot) -> SnapshotViews:
        """Return the views of a snapshot, none of them made yet; unused, they are gone again."""
        schema = f"snapshot_{snapshot.number}_{next(self._serial)}"
        return SnapshotViews(self, snapshot, schema)

    def close(self) -> None:
        """Let go of the database; readers that are still at work keep it."""
        with self._lock:
            self._connection = None  # closed, it would take their connections along

    def cursor(self, schema: str) -> duckdb.DuckDBPyConnection:
        """Return a connection to which the views of a schema are the tables."""
        with self._lock:
            cursor = self._open().cursor()
        search = f"set search_path = {quote(f'{schema},main')}"  # a name of ours
        cursor.execute(search)
        return cursor

    def make_schema(self, schema: str) -> None:
        """Make a schema, and drop those that nobody reads any more."""
        with self._lock:
            connection = self._open()
            while self._released:
                removal = f"drop schema if exists {self._released.popleft()} cascade"
                connection.execute(removal)
            making = f"create schema {schema}"
            connection.execute(making)

    def release(self, schema: str) -> None:
        """Take note that nobody reads a schema: the next that is made takes it away.

        Called wherever the interpreter finds the last reader gone, so it waits for nothing.
        """
        self._released.append(schema)

    def render(self, snapshot: Snapshot, views: list[str]) -> str:
        """Return the SQL text of views of a snapshot."""
        return "\n".join(render_views(self._root, snapshot.sound_files(), views))

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            connection = begin_database(self._settings)
            connection.execute(read_sql("macros"))
            connection.execute("set allowed_directories = $paths", {"paths": [str(self._root)]})
            lock_database(connection)
            self._connection = connection
        return self._connection


class SnapshotViews:
    """The views of one snapshot, for all of its readers."""

    def __init__(self, database: Database, snapshot: Snapshot, schema: str) -> None:
        """Make nothing yet; ``Database.open`` is the way to get one."""
        self._database = database
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
            cursor = self._database.cursor(self._schema)
        weakref.finalize(reader, self._idle.append, cursor).atexit = False
        return cursor

    def provide(self, statement: str) -> None:
        """Make the views that a statement names, and those that they are made of.

        A damaged table has none, so that the statement fails (``Snapshot.blame`` says why).
        """
        views = list_views(statement)
        if self._made.issuperset(views):
            return
        with self._lock:
            maker = self._begin()
            lacking = [view for view in views if view not in self._made]
            maker.execute(self._database.render(self._snapshot, lacking))
            self._made.update(lacking)

    def _begin(self) -> duckdb.DuckDBPyConnection:
        if self._maker is None:
            self._database.make_schema(self._schema)
            weakref.finalize(self, self._database.release, self._schema).atexit = False
            self._maker = self._database.cursor(self._schema)
        return self._maker


@lru_cache(_STATEMENTS_KEPT)
def list_views(statement: str) -> tuple[str, ...]:
    """Return the views whose names stand in a statement, those that others are made of first."""
    named = set(_WORD.findall(statement)).intersection(ALL_VIEWS)
    bases = {base for name in named for base in DERIVED_VIEWS.get(name, ())}
    return tuple(view for view in ALL_VIEWS if view in named | bases)
