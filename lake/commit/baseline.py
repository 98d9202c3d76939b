"""Commits the baseline of a lake: the full state that it begins with, without blocks.

Its files are first written to a separate folder, ``_log/.state-<key>``, where they survive a kill;
``<number>.json`` lists the files of each part. Finally all are hard-linked into the lake and
committed.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa

from tonlake.lake.commit.commit import check_rows
from tonlake.lake.commit.rewrite import commit_maintenance
from tonlake.lake.errors import CommitConflict
from tonlake.lake.file.datafile import encode_file
from tonlake.lake.log.disk import (
    LOCK_FILE,
    NewFiles,
    hold_lock,
    make_folder,
    naming_full_disk,
    reach,
    sync_folders,
    write_file,
)
from tonlake.lake.log.place import NewFile, Place, list_places
from tonlake.lake.log.state import LOG_FOLDER, Baseline, Commit, DataFile, LogState, read_state
from tonlake.lake.schema import SCHEMA_VERSION, TABLES
from tonlake.lake.settings import LakeSettings

_PREFIX = ".state-"
_KEY_LETTERS = 16


class Part(msgspec.Struct, frozen=True):
    """The files of one part of the state, and its number of accounts."""

    accounts: int
    files: tuple[DataFile, ...]


class PartFolder(NamedTuple):
    """The folder of a baseline's files until all parts are written."""

    path: Path
    place: Place
    settings: LakeSettings

    def read(self, number: int) -> Part | None:
        """Return a part; None if it was not written, or not completely."""
        try:
            part = msgspec.json.decode(self._list_path(number).read_bytes(), type=Part)
            is_whole = all(_digest(self._path(file)) == file.sha256 for file in part.files)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        return part if is_whole else None

    def write(self, number: int, accounts: int, parts: Iterable[Mapping[str, pa.Table]]) -> Part:
        """Write the rows of a part durably, one file per table."""
        found = []
        with NewFiles("file") as files:
            for tables in parts:
                for name, rows in tables.items():
                    checked = check_rows(rows, TABLES[name])
                    file, data = encode_file(NewFile(name, self.place, checked), self.settings)
                    files.write(self._path(file), data)
                    found.append(file)
            files.finish()
        part = Part(accounts, tuple(found))
        write_file(self._list_path(number), msgspec.json.encode(part), "file")
        return part

    def link(self, lake_dir: Path, files: Sequence[DataFile]) -> None:
        """Hard-link files to their names in the lake, durably; their names here stay."""
        for file in files:
            final = lake_dir / file.path
            make_folder(final.parent)
            final.unlink(missing_ok=True)  # left by a killed commit
            with naming_full_disk(final):
                os.link(self._path(file), final)
        sync_folders((lake_dir / file.path).parent for file in files)

    def _path(self, file: DataFile) -> Path:
        return self.path / f"{file.table}-{file.sha256}"

    def _list_path(self, number: int) -> Path:
        return self.path / f"{number}.json"


def baseline_place(state: LogState) -> Place:
    """Return the place of a lake's baseline: the block before its first.

    In a pruned lake that is the last pruned block: the baseline has all accounts, kept or not.
    """
    first = next(place for place in list_places(state) if place.first > state.last_pruned)
    return Place(first.first - 1, first.first - 1, first.day, is_baseline=True)


@contextmanager
def open_parts(
    lake_dir: Path, state: LogState, settings: LakeSettings, *identity: object
) -> Iterator[PartFolder]:
    """Open the folder of the baseline identified by ``identity``; remove those of any other.

    The folder stays if the block fails, and is removed if it succeeds.
    """
    place = baseline_place(state)
    described = msgspec.json.encode([place, SCHEMA_VERSION, settings, *identity])
    name = f"{_PREFIX}{hashlib.sha256(described).hexdigest()[:_KEY_LETTERS]}"
    log = lake_dir / LOG_FOLDER
    with hold_lock(log / f"{_PREFIX}lock", wait=False) as held:
        if not held:
            raise CommitConflict(f"{lake_dir}: another process is ingesting the baseline")
        for other in log.glob(f"{_PREFIX}*/"):
            if other.name != name:
                shutil.rmtree(other)
        make_folder(log / name)
        yield PartFolder(log / name, place, settings)
        shutil.rmtree(log / name)


def commit_baseline(
    lake_dir: Path,
    state: LogState,
    baseline: Baseline,
    folder: PartFolder,
    parts: Iterable[Part],
) -> Commit:
    """Commit the files of all parts of a baseline, in order."""
    files = list({file.path: file for part in parts for file in part.files}.values())
    with hold_lock(lake_dir / LOCK_FILE):
        now = read_state(lake_dir)
        known = now.baseline is not msgspec.UNSET
        if known or now.undoings != state.undoings or baseline_place(now) != folder.place:
            raise CommitConflict(
                f"{lake_dir}: the first blocks of the lake changed, or another baseline was"
                " committed, while the state was read; run the same command again"
            )
        folder.link(lake_dir, files)
        reach("commit.folders_synced")
        return commit_maintenance(lake_dir, now, added=files, baseline=baseline)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
