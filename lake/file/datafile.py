"""The data files of a commit: written durably, all of them or none."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from tonlake.lake.file.writer import PLAIN_ROWS, encode_parquet
from tonlake.lake.log.crash import reach
from tonlake.lake.log.disk import NewFiles, begin_grace, make_folder, sync_folders
from tonlake.lake.log.groups import find_paths
from tonlake.lake.log.state import DataFile
from tonlake.lake.schema import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

    from tonlake.lake.log.place import Derivation, NewFile
    from tonlake.lake.log.state import LogState
    from tonlake.lake.settings import LakeSettings


Encode = Callable[["NewFile", "LakeSettings"], "pa.Buffer"]
"""Returns the Parquet file of rows."""


class Changes(NamedTuple):
    """Files that a commit adds, and paths of those that are not live after it."""

    added: tuple[DataFile, ...]
    removed: tuple[str, ...]


def encode_file(file: NewFile, settings: LakeSettings) -> pa.Buffer:
    """Return the Parquet file of rows."""
    return encode_parquet(file.rows, TABLES[file.table], settings)


@contextmanager
def encode_ahead(tables: Mapping[str, pa.Table], settings: LakeSettings) -> Iterator[Encode]:
    """Begin to encode tables in a thread, and give what returns their files when asked for.

    Rows are derived from these tables meanwhile. Small tables, and others, are encoded on demand.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="encode") as pool:
        begun = {
            name: pool.submit(encode_parquet, rows, TABLES[name], settings)
            for name, rows in sorted(tables.items())
            if rows.num_rows > PLAIN_ROWS
        }

        def encode(file: NewFile, settings: LakeSettings) -> pa.Buffer:
            if file.table in begun and file.rows is tables[file.table]:
                return begun[file.table].result()
            return encode_file(file, settings)

        try:
            yield encode
        finally:
            pool.shutdown(cancel_futures=True)


def write_changes(
    lake_dir: Path,
    state: LogState,
    derivation: Derivation,
    settings: LakeSettings,
    encode: Encode = encode_file,
) -> Changes:
    """Write files, and return how the live files of ``state`` change with them.

    A file that is live already is written again, which mends it if it is damaged, and is no
    change. On any failure the files that are not live are gone.

    Raises:
        LakeFull: no room.
    """
    written: list[DataFile] = []
    with ExitStack() as undo:
        undo.callback(lambda: remove_files(lake_dir, _only_new(written, state)))
        with NewFiles("file") as files:
            for file in derivation.files:
                if file.rows.num_rows:
                    _write_file(lake_dir, file, encode(file, settings), files, written)
            files.finish()
        reach("commit.files_renamed")
        sync_folders((lake_dir / file.path).parent for file in written)
        reach("commit.folders_synced")
        undo.pop_all()
    replaced = find_paths(state.by_place, derivation.removed)
    removed = sorted(replaced - {file.path for file in written})
    begin_grace(lake_dir, removed)
    return Changes(tuple(_only_new(written, state)), tuple(removed))


def _write_file(
    lake_dir: Path, file: NewFile, data: pa.Buffer, files: NewFiles, written: list[DataFile]
) -> None:
    sha256 = hashlib.sha256(data).hexdigest()
    path = file.path(sha256)
    written.append(
        DataFile(path, file.table, file.rows.num_rows, data.size, sha256, SCHEMA_VERSION)
    )
    final = lake_dir / path
    make_folder(final.parent)
    files.write(final, data)


def _only_new(written: Iterable[DataFile], state: LogState) -> list[DataFile]:
    by_path = {file.path: file for file in written}
    live = find_paths(state.by_place, by_path.keys())
    return [file for path, file in by_path.items() if path not in live]


def remove_files(lake_dir: Path, files: Iterable[DataFile]) -> None:
    """Remove files of a commit that failed; no live commit names them."""
    for file in files:
        (lake_dir / file.path).unlink(missing_ok=True)
