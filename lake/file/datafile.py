"""The data files of a commit: written durably, all of them or none."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from tonlake.lake.file.writer import encode_parquet
from tonlake.lake.log.crash import reach
from tonlake.lake.log.disk import NewFiles, begin_grace, make_folder, sync_folders
from tonlake.lake.log.groups import find_paths
from tonlake.lake.log.state import DataFile
from tonlake.lake.schema import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tonlake.lake.log.place import Derivation, NewFile
    from tonlake.lake.log.state import LogState
    from tonlake.lake.settings import LakeSettings


class Changes(NamedTuple):
    """Files that a commit adds, and paths of those that are not live after it."""

    added: tuple[DataFile, ...]
    removed: tuple[str, ...]


def write_changes(
    lake_dir: Path, state: LogState, derivation: Derivation, settings: LakeSettings
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
                    _write_file(lake_dir, file, settings, files, written)
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
    lake_dir: Path, file: NewFile, settings: LakeSettings, files: NewFiles, written: list[DataFile]
) -> None:
    data = encode_parquet(file.rows, TABLES[file.table], settings)
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
