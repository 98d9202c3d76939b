"""Commits without blocks: of files rewritten from rows that the lake has, and of the baseline.

The baseline is the full state that a lake begins with. Its files are first written to a separate
folder, ``_log/.state-<key>``, where they survive a kill; ``<number>.json`` lists the files of each
part. Finally all are hard-linked into the lake and committed.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.commit.commit import ATTEMPTS, append_commit, check_rows, give_up, still_holds
from tonlake.lake.commit.delta import publish
from tonlake.lake.errors import CommitConflict
from tonlake.lake.file.datafile import encode_file, write_changes
from tonlake.lake.file.rows import iter_tuples, read_rows
from tonlake.lake.log.disk import (
    LOCK_FILE,
    QUEUE_FILE,
    NewFiles,
    hold_lock,
    make_folder,
    naming_full_disk,
    reach,
    sync_folders,
    write_file,
)
from tonlake.lake.log.place import (
    Derivation,
    NewFile,
    Place,
    find_newest_day,
    list_files,
    list_places,
    read_place,
)
from tonlake.lake.log.snapshot import Lease
from tonlake.lake.log.state import (
    LOG_FOLDER,
    Baseline,
    Commit,
    DataFile,
    LogReader,
    LogState,
    read_state,
)
from tonlake.lake.schema import FETCHED_ACCOUNTS, SCHEMA_VERSION, TABLES
from tonlake.lake.settings import LakeSettings


def commit_maintenance(
    lake_dir: Path,
    state: LogState,
    *,
    added: Iterable[DataFile] = (),
    removed: Iterable[str] = (),
    segments: tuple[DataFile, ...] | None = None,
    baseline: Baseline | msgspec.UnsetType = msgspec.UNSET,
) -> Commit:
    """Append a commit without blocks, under the caller's lock."""
    commit = Commit(
        number=state.number + 1,
        first_mc_seqno=state.ranges[0][0],
        last_mc_seqno=state.ranges[-1][1],
        day=find_newest_day(state),
        added=tuple(added),
        removed=tuple(sorted(removed)),
        network=state.network,
        previous=state.digest,
        has_blocks=False,
        segments=segments,
        baseline=baseline,
    )
    append_commit(lake_dir, state, commit)
    return commit


def commit_derived(
    lake_dir: Path, settings: LakeSettings, derive: Callable[[LogState], Derivation | None]
) -> Commit | None:
    """Commit what ``derive`` returns without the lock, again if files changed; None: nothing."""
    read_state(lake_dir)  # a folder without a lake has no lock to hold
    with hold_lock(lake_dir / QUEUE_FILE):
        for _attempt in range(ATTEMPTS):
            expected = read_state(lake_dir)
            lease = Lease(lake_dir, expected.number)
            derivation = derive(expected)
            if derivation is None:
                return None
            with (
                lease,
                spool_files(lake_dir, derivation.files) as spooled,
                hold_lock(lake_dir / LOCK_FILE),
            ):
                state = read_state(lake_dir)
                if not still_holds(expected, state):
                    continue
                ready = Derivation(spooled, derivation.removed)
                added, removed = write_changes(lake_dir, state, ready, settings)
                if not added and not removed:
                    return None
                commit = commit_maintenance(lake_dir, state, added=added, removed=removed)
            publish(LogReader(lake_dir), settings)
            return commit
    raise give_up(lake_dir)


@contextmanager
def spool_files(lake_dir: Path, files: Iterable[NewFile]) -> Iterator[Iterator[NewFile]]:
    """Yield files in order, spooled to disk: the rows of a large lake do not fit in memory."""
    path = lake_dir / LOG_FOLDER
    # Closing a stream writes what it holds, and fails again on a full disk.
    with naming_full_disk(path), tempfile.TemporaryFile(dir=path) as stream:
        entries: list[tuple[str, Place, int]] = []
        for file in files:
            entries.append((file.table, file.place, stream.tell()))
            with pa.ipc.new_stream(stream, file.rows.schema) as writer:
                writer.write_table(file.rows)
        yield (_read_spooled(stream, *entry) for entry in entries)


def _read_spooled(stream: IO[bytes], table: str, place: Place, offset: int) -> NewFile:
    stream.seek(offset)
    return NewFile(table, place, pa.ipc.open_stream(stream).read_all())


_NAME = FETCHED_ACCOUNTS.name


def keep_fetched(
    lake_dir: Path, rows: pa.Table, most: int, settings: LakeSettings
) -> Commit | None:
    """Commit rows of ``fetched_accounts``, of known blocks, the ``most`` newest; None: no row."""
    with hold_lock(lake_dir / LOCK_FILE):
        state = read_state(lake_dir)
        known = list_files(state, _NAME)
        old = [read_rows(lake_dir, file) for file in known]
        kept = _choose([*old, rows], most)
        files = frozenset(file.path for file in known)
        written = Derivation(_place_rows(kept, state, known), files)
        added, removed = write_changes(lake_dir, state, written, settings)
        if not added and not removed:
            return None
        return commit_maintenance(lake_dir, state, added=added, removed=removed)


def _choose(tables: list[pa.Table], most: int) -> pa.Table:
    """Return the newest row of each account, limited to those of the newest blocks."""
    rows = pa.concat_tables([table.select(FETCHED_ACCOUNTS.arrow.names) for table in tables])
    rows = rows.take(pc.sort_indices(rows, [("mc_seqno", "descending")]))
    newest: dict[tuple[int, bytes], int] = {}
    for at, account in enumerate(iter_tuples(rows, ("workchain", "account"))):
        newest.setdefault(account, at)
    chosen = pa.array([*newest.values()][:most], pa.int64())
    return rows.take(chosen).sort_by([(name, "ascending") for name in FETCHED_ACCOUNTS.sort])


def _place_rows(rows: pa.Table, state: LogState, known: list[DataFile]) -> Iterator[NewFile]:
    """Yield a file for each place that has some of the rows."""
    places: set[Place] = {read_place(file.path) for file in known} | set(list_places(state))
    for place in sorted(places):
        here = pc.and_(
            pc.greater_equal(rows["mc_seqno"], place.first),
            pc.less_equal(rows["mc_seqno"], place.last),
        )
        mine = rows.filter(here)
        if mine.num_rows:
            yield NewFile(_NAME, place, mine)


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
    """Return the place of a lake's baseline: the block before its first that is not pruned."""
    first = next(place for place in list_places(state) if place.first > state.last_pruned)
    return Place(first.first - 1, first.first - 1, first.day, is_baseline=True)


@contextmanager
def open_parts(
    lake_dir: Path, state: LogState, settings: LakeSettings, *identity: object
) -> Iterator[PartFolder]:
    """Open the folder of the baseline with an ``identity`` until it is committed; remove others."""
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
    lake_dir: Path, state: LogState, baseline: Baseline, folder: PartFolder, parts: Iterable[Part]
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
