"""Reads lakes and exports in object storage: a snapshot, and SQL over it.

The log is small and is copied; of the data files, a query reads the row groups and columns that it
needs, for the days in its filter. Digests are not verified; an import does that.
"""

from __future__ import annotations

import re
import tempfile
import weakref
from collections import deque
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tonlake.lake.duck.connection import (
    PARTITION,
    VIEW_BASES,
    VIEWED_TABLES,
    choose_views,
    connect,
    list_bases,
    read_macros,
    read_sql,
)
from tonlake.lake.duck.database import Database
from tonlake.lake.duck.engine import begin_database, lock_database
from tonlake.lake.duck.labels import render_labels
from tonlake.lake.duck.statement import join_scripts
from tonlake.lake.errors import LakeNotFound, SnapshotNotFound
from tonlake.lake.log.place import read_place
from tonlake.lake.log.ranges import merge_ranges
from tonlake.lake.log.selection import SELECTION_FILE, list_lacking
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import LOG_FOLDER, LogState, read_state
from tonlake.lake.storage.storage import open_storage, work_through
from tonlake.lake.transfer.manifest import check_version, read_manifest
from tonlake.lake.transfer.remote_own import (
    describe_own_files,
    list_remote_tables,
    render_remote_views,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from duckdb import DuckDBPyConnection
    from pyarrow.dataset import FileSystemDataset

    from tonlake.lake.duck.database import Views
    from tonlake.lake.log.own import OwnState, OwnTable
    from tonlake.lake.log.state import DataFile
    from tonlake.lake.schema import Table
    from tonlake.lake.settings import LakeSettings
    from tonlake.lake.storage.storage import Storage

_ENTRY = re.compile(r"([1-9][0-9]*)(\.checkpoint)?\.json")


@contextmanager
def open_to_ask(
    place: Path | str, number: int | None, settings: LakeSettings, statement: str | None = None
) -> Iterator[tuple[Snapshot, DuckDBPyConnection]]:
    """Yield a snapshot of a lake, the newest by default, and a connection on it.

    ``place`` is the lake's folder, or the URL of a lake or an export in object storage. Only the
    views for people that ``statement`` needs are created; without a statement, all.

    Raises:
        LakeNotFound, SnapshotNotFound, LakeCorrupt: as ``open_snapshot`` and ``open_remote``.
        StorageError: object storage does not answer, now or during a query.
    """
    if isinstance(place, Path):
        snapshot = open_snapshot(place, number, check_digests=settings.check_digests)
        yield snapshot, connect(snapshot, settings, statement=statement)
        return
    storage = open_storage(place)
    snapshot = open_remote(storage, number)
    with storage.naming_faults():
        yield snapshot, connect_remote(snapshot, storage, settings, statement)


@contextmanager
def open_views(
    place: Path | str, number: int | None, settings: LakeSettings
) -> Iterator[tuple[Snapshot, Views]]:
    """Yield a snapshot and its views, for readers of named queries; see ``open_to_ask``."""
    if isinstance(place, Path):
        snapshot = open_snapshot(place, number, check_digests=settings.check_digests)
        yield snapshot, Database(place, settings).open(snapshot)
        return
    storage = open_storage(place)
    snapshot = open_remote(storage, number)
    with storage.naming_faults():
        yield snapshot, RemoteViews(snapshot, storage, settings)


def open_remote(storage: Storage, number: int | None = None) -> Snapshot:
    """Open a lake in storage as of commit ``number``, the newest by default, or an export.

    Raises:
        LakeNotFound: there is neither.
        SnapshotNotFound: it has no commit of this number.
        LakeCorrupt, PieceRefused: the log or the manifest is damaged.
        StorageError: object storage does not answer.
    """
    names = [path.rpartition("/")[2] for path in storage.list_files([LOG_FOLDER])]
    last = max((int(name[:-5]) for name in names if _is_entry(name)), default=0)
    if not last:
        return Snapshot(Path(storage.root), _read_export(storage, number))
    if number is not None and number > last:
        raise SnapshotNotFound(f"{storage.name} has commits 1 to {last}, and no {number}")
    needed = [f"{LOG_FOLDER}/{name}" for name in list_needed(names, number)]
    needed += [SELECTION_FILE] if SELECTION_FILE.rpartition("/")[2] in names else []
    with tempfile.TemporaryDirectory(prefix="tonlake-log-") as folder:
        copy = Path(folder)
        (copy / LOG_FOLDER).mkdir()
        for path, data in zip(needed, work_through(storage.read, needed, storage), strict=True):
            (copy / path).write_bytes(data)
        return Snapshot(Path(storage.root), read_state(copy, number), list_lacking(copy))


def list_needed(names: Iterable[str], number: int | None) -> list[str]:
    """Return the log files that a state needs: the newest checkpoint, and the entries after it."""
    found = [match for match in map(_ENTRY.fullmatch, names) if match]
    last = number or max((int(match[1]) for match in found), default=0)
    checkpoints = [int(match[1]) for match in found if match[2] and int(match[1]) <= last]
    newest = max(checkpoints, default=0)
    return sorted(match[0] for match in found if newest <= int(match[1]) <= last)


def _is_entry(name: str) -> bool:
    match = _ENTRY.fullmatch(name)
    return match is not None and match[2] is None


def _read_export(storage: Storage, number: int | None) -> LogState:
    """Return the state of an export: its days, with the number of the exported snapshot."""
    manifest = read_manifest(storage)
    if manifest is None:
        raise LakeNotFound(f"{storage.name} holds neither a lake nor an export of one")
    check_version(manifest)
    if number not in (None, manifest.snapshot):
        raise SnapshotNotFound(
            f"{storage.name} is an export of snapshot {manifest.snapshot}, and has no {number}"
        )
    return LogState(
        number=manifest.snapshot,
        files=manifest.files,
        ranges=merge_ranges(
            tuple((each.first_mc_seqno, each.last_mc_seqno) for each in manifest.ranges)
        ),
        network=manifest.network,
        segments=manifest.segments,
        pruned=manifest.pruned,
    )


def connect_remote(
    snapshot: Snapshot, storage: Storage, settings: LakeSettings, statement: str | None = None
) -> DuckDBPyConnection:
    """Return an in-memory database with the views of ``connect``; it cannot open files itself.

    Arrow reads the files; those of days outside the filter of a query are not opened.
    """
    own = list_remote_tables(storage)
    return _connect(_describe_tables(snapshot, storage, own), own, settings, statement)


class RemoteViews:
    """The views of a snapshot in storage, for readers in any number of threads.

    Arrow datasets are registered per connection, so every cursor registers them again. The views
    over them are shared: they resolve to the tables of the querying cursor.
    """

    def __init__(self, snapshot: Snapshot, storage: Storage, settings: LakeSettings) -> None:
        """Take a snapshot opened by ``open_remote``; none of its files is opened here."""
        own = list_remote_tables(storage)
        self._tables = _describe_tables(snapshot, storage, own)
        self._connection = _connect(self._tables, own, settings)
        self._idle: deque[DuckDBPyConnection] = deque()

    def lend(self, reader: object) -> DuckDBPyConnection:
        """Return a connection on the snapshot, for the use of one reader as long as it exists."""
        try:
            cursor = self._idle.pop()
        except IndexError:
            cursor = self._connection.cursor()
            for view, files in self._tables.items():
                cursor.register(view, files)
        weakref.finalize(reader, self._idle.append, cursor).atexit = False
        return cursor

    def provide(self, statement: str) -> None:
        """Do nothing: all views exist."""


def _connect(
    tables: Mapping[str, FileSystemDataset],
    own: list[tuple[OwnTable, OwnState]],
    settings: LakeSettings,
    statement: str | None = None,
) -> DuckDBPyConnection:
    connection = begin_database(settings)
    connection.execute(read_macros())
    connection.execute(render_labels(settings))
    for view, files in tables.items():
        connection.register(view, files)
    derived = (view for view in choose_views(statement) if view in VIEW_BASES)
    found = [read_sql(view) for view in derived if list_bases(view) <= tables.keys()]
    connection.execute(join_scripts([*found, render_remote_views(own)]))
    lock_database(connection)
    return connection


def _describe_tables(
    snapshot: Snapshot, storage: Storage, own: list[tuple[OwnTable, OwnState]]
) -> dict[str, FileSystemDataset]:
    """Return the files of each view over files, user-defined tables last."""
    tables = {
        view: describe_files(storage, table, snapshot.files[table.name])
        for view, table in VIEWED_TABLES.items()
        if table.name not in snapshot.damaged
    }
    return tables | describe_own_files(storage, own)


def describe_files(storage: Storage, table: Table, files: Iterable[DataFile]) -> FileSystemDataset:
    """Return a table's files as a dataset, unopened; columns newer than a file are NULL."""
    # Importing it with the module would slow the start of every command by half a second.
    import pyarrow.dataset as ds  # noqa: PLC0415

    options = ds.ParquetFragmentScanOptions(pre_buffer=True)
    file_format = ds.ParquetFileFormat(default_fragment_scan_options=options)
    fields = [field.with_nullable(True) for field in table.arrow]  # noqa: FBT003 - Arrow's own
    schema = pa.schema([*fields, pa.field(PARTITION, pa.date32())])
    fragments = [
        file_format.make_fragment(
            f"{storage.root}/{file.path}",
            storage.filesystem,
            ds.field(PARTITION) == date.fromisoformat(read_place(file.path).day),
            file_size=file.bytes,
        )
        for file in files
    ]
    return ds.FileSystemDataset(fragments, schema, file_format, storage.filesystem)
