"""Opens snapshots of a lake in a local folder or in object storage."""

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

from duckdb import DuckDBPyConnection

from tonlake.api.request.call import Call
from tonlake.api.settings import Settings
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.lake.duck.connection import Database, connect
from tonlake.lake.duck.own import list_own_tables
from tonlake.lake.duck.remote import RemoteViews, Views
from tonlake.lake.index.index import Index, open_index
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import LogReader
from tonlake.lake.storage.storage import Storage, is_url, open_remote, open_storage
from tonlake.queries.reader import Reader


class LakeSource:
    """A folder, or a lake in object storage, to open snapshots from."""

    def __init__(self, place: str | os.PathLike[str], settings: Settings) -> None:
        """Take a path or an ``s3://`` URL; nothing is opened yet."""
        self.settings = settings
        self.place: Path | str = (
            place if isinstance(place, str) and is_url(place) else Path(place).expanduser()
        )

    @cached_property
    def storage(self) -> Storage | None:
        """The object storage; None for a local lake."""
        return open_storage(self.place) if isinstance(self.place, str) else None

    @cached_property
    def tvm(self) -> TvmPool:
        """The TVM processes for get-methods; they end with the source."""
        pool = TvmPool(self.settings.tvm)
        weakref.finalize(self, pool.close)
        return pool

    @cached_property
    def _database(self) -> Database:
        return Database(Path(self.place), self.settings.lake)

    @cached_property
    def log(self) -> LogReader | None:
        """The commit log of a local lake, read incrementally; None in object storage."""
        return LogReader(self.place) if isinstance(self.place, Path) else None

    def open(self, number: int | None = None) -> "Opened":
        """Open the lake as of a commit, by default the newest; raises as ``tonlake.open``."""
        if self.storage is not None:
            snapshot = open_remote(self.storage, number)
            return Opened(self, snapshot, RemoteViews(snapshot, self.storage, self.settings.lake))
        check = self.settings.lake.check_digests
        snapshot = open_snapshot(Path(self.place), number, check_digests=check)
        return Opened(self, snapshot, self._database.open(snapshot))

    def naming_faults(self) -> AbstractContextManager[None]:
        """Return a context that translates errors of object storage; a no-op for local lakes."""
        return nullcontext() if self.storage is None else self.storage.naming_faults()


class Opened:
    """An open snapshot with its views and index; thread-safe."""

    def __init__(self, source: LakeSource, snapshot: Snapshot, views: Views) -> None:
        """Take an open snapshot; use ``LakeSource.open`` instead."""
        self.source, self.snapshot = source, snapshot
        self._views = views
        self._lasting: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._indexes: list[Index | None] = []

    def reader(self) -> Reader:
        """Return a reader for one thread that uses only SQL."""
        return Reader(self.snapshot, self._views, lasting=self._lasting)

    def call(self, make_reader: Callable[..., Reader] = Reader) -> Call:
        """Return the context of an operation for one thread; ``make_reader`` is as ``Reader``."""
        with self._lock:
            if not self._indexes:
                # In object storage SQL answers everything.
                settings, is_local = self.source.settings.lake, self.source.storage is None
                self._indexes.append(open_index(self.snapshot, settings) if is_local else None)
            tvm = self.source.tvm
        index, lasting = self._indexes[0], self._lasting
        reader = make_reader(self.snapshot, self._views, index=index, lasting=lasting)
        return Call(self.source.settings, reader, tvm=tvm)

    def connect(self, statement: str) -> DuckDBPyConnection:
        """Return a new connection to the snapshot with the views that ``statement`` needs."""
        storage, settings = self.source.storage, self.source.settings.lake
        if storage is not None:
            return RemoteViews(self.snapshot, storage, settings, statement).connection
        return connect(self.snapshot, settings, statement=statement)

    def has_own_table(self, statement: str) -> bool:
        """Whether a statement may name a user-defined table, which only local lakes have."""
        return self.source.storage is None and bool(
            list_own_tables(self.snapshot.lake_dir, statement)
        )

    @property
    def test_only(self) -> bool:
        """Whether friendly addresses have the testnet flag."""
        return Call(self.source.settings, self.reader()).test_only
