"""SQL over a lake in object storage: it reads only what a query needs, and verifies no digests."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from tonlake.lake.duck.connection import (
    VIEWED_TABLES,
    VIEWS_OVER_VIEWS,
    Database,
    SnapshotViews,
    choose_views,
    connect,
    list_bases,
    list_macros,
    read_sql,
    render_macros,
    select_all,
)
from tonlake.lake.duck.engine import begin_database, lock_database
from tonlake.lake.duck.own import OWN_FOLDER, OwnState, OwnTable, list_own_tables, render_own_views
from tonlake.lake.duck.part import cut_parts
from tonlake.lake.duck.statement import join_scripts, quote_name
from tonlake.lake.file.rows import PARTITION, PackedRows
from tonlake.lake.log.place import read_place
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import DataFile
from tonlake.lake.schema import Table
from tonlake.lake.settings import LakeSettings
from tonlake.lake.storage.storage import Storage, open_remote, open_storage, work_through

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyarrow.dataset import Dataset

_FILES_OF = "files of "


@contextmanager
def open_to_ask(
    place: Path | str, number: int | None, settings: LakeSettings, statement: str | None = None
) -> Iterator[tuple[Snapshot, DuckDBPyConnection]]:
    """Yield a snapshot of a lake, at a folder or URL, and a connection for a statement, or any."""
    with open_views(place, number, settings, statement) as (snapshot, views):
        if isinstance(views, RemoteViews):
            yield snapshot, views.connection
        else:
            yield snapshot, connect(snapshot, settings, statement=statement)


@contextmanager
def open_views(
    place: Path | str, number: int | None, settings: LakeSettings, statement: str | None = None
) -> Iterator[tuple[Snapshot, Views]]:
    """Yield a snapshot and its views, for readers of named queries; see ``open_to_ask``."""
    if isinstance(place, Path):
        snapshot = open_snapshot(place, number, check_digests=settings.check_digests)
        yield snapshot, Database(place, settings).open(snapshot)
        return
    storage = open_storage(place)
    snapshot = open_remote(storage, number)
    with storage.naming_faults():
        yield snapshot, RemoteViews(snapshot, storage, settings, statement)


class RemoteViews:
    """The views of a snapshot in storage, for readers in any number of threads.

    Arrow reads the files, of the days in a query's filter; the database cannot open files itself.
    Datasets are registered per cursor, and views resolve to those of the cursor that queries.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        storage: Storage,
        settings: LakeSettings,
        statement: str | None = None,
    ) -> None:
        """Take a snapshot opened by ``open_remote``; none of its files is opened here."""
        own = _list_own_tables(storage)
        self._tables = _describe_tables(snapshot, storage, own)
        self.connection = begin_database(settings)
        chosen = choose_views(statement)
        self.connection.execute(render_macros(settings, list_macros(statement, chosen)))
        for view, files in self._tables.items():
            self.connection.register(view, files)
        known = {name.removeprefix(_FILES_OF) for name in self._tables}
        texts = [_render_view(view) for view in chosen if list_bases(view) <= known]
        views = render_own_views(own, lambda name, _paths: quote_name(f"{_FILES_OF}{name}"))
        self.connection.execute(join_scripts([*texts, *views]))
        lock_database(self.connection)
        self._idle: deque[DuckDBPyConnection] = deque()

    def lend(self, reader: object) -> DuckDBPyConnection:
        """Return a connection on the snapshot, for the use of one reader as long as it exists."""
        try:
            cursor = self._idle.pop()
        except IndexError:
            cursor = self.connection.cursor()
            for view, files in self._tables.items():
                cursor.register(view, files)
        weakref.finalize(reader, self._idle.append, cursor).atexit = False
        return cursor

    def provide(self, statement: str, cursor: DuckDBPyConnection | None = None) -> None:
        """Do nothing: all views exist."""


Views = SnapshotViews | RemoteViews
"""The views of one snapshot, shared by all of its readers."""


def _render_view(view: str) -> str:
    if view in VIEWS_OVER_VIEWS:
        return cut_parts(read_sql(view))
    rows = f"{select_all(VIEWED_TABLES[view])} from {quote_name(f'{_FILES_OF}{view}')}"
    return f"create view {quote_name(view)} as {rows};\n"


def _describe_tables(
    snapshot: Snapshot, storage: Storage, own: list[tuple[OwnTable, OwnState]]
) -> dict[str, Dataset]:
    """Return the files of each view over files, and of user-defined tables."""
    tables = {
        f"{_FILES_OF}{view}": describe_files(storage, table, snapshot.files[table.name])
        for view, table in VIEWED_TABLES.items()
        if table.name not in snapshot.damaged
    }
    # Importing it with the module would slow the start of every command by half a second.
    import pyarrow.dataset as ds  # noqa: PLC0415

    return tables | {
        f"{_FILES_OF}{table.name}": ds.dataset(
            [f"{storage.root}/{part.path}" for part in state.parts.values()],
            filesystem=storage.filesystem,
            format="parquet",
        )
        for table, state in own
    }


def describe_files(storage: Storage, table: Table, files: Sequence[DataFile]) -> Dataset:
    """Return a table's files as a dataset, NULL in columns newer than a file; it reads packs."""
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
        if not file.pack
    ]
    parquet = ds.FileSystemDataset(fragments, schema, file_format, storage.filesystem)
    packed = [file for file in files if file.pack]
    if not packed:
        return parquet
    load = partial(_read_pack, storage)
    for _ in work_through(load, [file.pack for file in packed], storage):
        pass  # several at a time; they are kept
    rows = PackedRows(load).read(table.name, packed)
    return ds.dataset([parquet, ds.dataset(rows.cast(schema))])


@lru_cache(256)
def _read_pack(storage: Storage, path: str) -> pa.Buffer:
    """Return the bytes of a pack, which never change, for all tables."""
    return pa.py_buffer(storage.read(path))


def _list_own_tables(storage: Storage) -> list[tuple[OwnTable, OwnState]]:
    """Return the user-defined tables that have rows."""
    with TemporaryDirectory(prefix="tonlake-tables-") as folder:
        for path in storage.list_files([OWN_FOLDER]):
            if path.endswith(".json"):
                copy = Path(folder, path)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(storage.read(path))
        return list_own_tables(Path(folder))
