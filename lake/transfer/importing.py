"""Pieces of another lake into this one: every file checked, every stretch a commit of its own."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from tonlake.lake.commit.commit import append_commit
from tonlake.lake.errors import LakeNotFound, PieceRefused, RangeOverlap
from tonlake.lake.log.disk import LOCK_FILE, hold_lock, make_folder
from tonlake.lake.log.place import read_place
from tonlake.lake.log.state import (
    LOG_FOLDER,
    Commit,
    LogState,
    Range,
    join_networks,
    overlaps,
    read_state,
)
from tonlake.lake.schema import (
    OPEN_EDGES,
    SCHEMA_VERSION,
    TABLES,
    TRACES,
    TRANSACTION_TRACES,
    TRANSACTIONS,
)
from tonlake.lake.schema.action import ACTION_TABLES
from tonlake.lake.transfer.check import check_files
from tonlake.lake.transfer.manifest import copy_file, encode_manifest, read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tonlake.lake.log.state import DataFile
    from tonlake.lake.transfer.manifest import Manifest, Stretch

SPANNING = frozenset(
    table.name for table in (TRANSACTION_TRACES, TRACES, OPEN_EDGES, *ACTION_TABLES)
)
"""Tables whose rows follow from blocks before and after as well: a part of a lake is not right
about them, so that they are derived anew where it arrives."""


class ImportReport(msgspec.Struct, frozen=True):
    """What was new; ``derive`` tells that traces and actions are to be derived anew."""

    commits: int
    files: int
    bytes: int
    rows: int
    ranges: tuple[Range, ...]
    derive: bool


def import_piece(
    folder: Path,
    lake_dir: Path,
    on_file: Callable[[int, int], None] = lambda _done, _all: None,
) -> ImportReport:
    """Add what ``export_lake`` wrote to a lake, which is made if it is not there.

    A whole lake that comes into an empty folder becomes the same lake again, traces, actions and
    index included. Stretches that are there already are passed over, so that the same command
    goes on where it was stopped.

    Args:
        folder: Folder with the manifest.
        lake_dir: Folder of the lake.
        on_file: Called after each file with the number of files done and of all.

    Raises:
        PieceRefused: there is no manifest, or it is damaged, too new or contradicts itself.
        LakeCorrupt: a file of the folder is missing or damaged; missing ones, and those of
            another size or number of rows, are found before anything is copied.
        RangeOverlap: the lake has some blocks of a stretch and lacks others.
        NetworkMismatch: the lake is of another network.
        LakeFull, CommitConflict: as ``commit_range``.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise PieceRefused(f"{folder} holds no export: no manifest.json in it")
    if manifest.schema_version > SCHEMA_VERSION or not _knows_tables(manifest):
        raise PieceRefused(
            f"the export has schema version {manifest.schema_version}, and this version of "
            f"tonlake writes {SCHEMA_VERSION}: install a newer one"
        )
    make_folder(lake_dir / LOG_FOLDER)
    with hold_lock(lake_dir / LOCK_FILE):
        state = _read_state(lake_dir)
        join_networks(state.network, manifest.network)
        same = manifest.whole and _is_part(state, manifest)
        missing = _list_missing(state, manifest)
        return _Intake(folder, lake_dir, manifest, same=same).run(state, missing, on_file)


def _knows_tables(manifest: Manifest) -> bool:
    return all(file.table in TABLES for file in manifest.files)


def _read_state(lake_dir: Path) -> LogState:
    try:
        return read_state(lake_dir)
    except LakeNotFound:
        return LogState()


def _is_part(state: LogState, manifest: Manifest) -> bool:
    """Tell whether the lake has nothing that the export does not have."""
    known = {file.path for file in manifest.files}
    return all(file.path in known for file in state.files)


def _list_missing(state: LogState, manifest: Manifest) -> list[Stretch]:
    """Return the stretches of which the lake has nothing.

    Raises:
        RangeOverlap: it has a part of one.
    """
    missing = []
    for each in manifest.stretches:
        mine = (each.first_mc_seqno, each.last_mc_seqno)
        found = overlaps(state.ranges, mine)
        if not found:
            missing.append(each)
        elif not any(first <= mine[0] and mine[1] <= last for first, last in found):
            raise RangeOverlap(
                f"masterchain blocks {mine[0]}..{mine[1]} cannot be imported: the lake has "
                f"{found[0][0]}..{found[0][1]} already"
            )
    return missing


def _lacks_traces(state: LogState) -> bool:
    """Tell whether an import that was stopped has left transactions without traces."""
    places = {
        table.name: {read_place(file.path) for file in state.files if file.table == table.name}
        for table in (TRANSACTIONS, TRANSACTION_TRACES)
    }
    return not places[TRANSACTIONS.name] <= places[TRANSACTION_TRACES.name]


class _Intake:
    """One import at work; the caller holds the lock."""

    def __init__(
        self,
        folder: Path,
        lake_dir: Path,
        manifest: Manifest,
        *,
        same: bool,
    ) -> None:
        self._folder, self._lake_dir = folder, lake_dir
        self._manifest, self._same = manifest, same
        self._digest = hashlib.sha256(encode_manifest(manifest)).hexdigest()

    def run(
        self, state: LogState, missing: list[Stretch], on_file: Callable[[int, int], None]
    ) -> ImportReport:
        """Commit stretch by stretch, in order."""
        by_place = self._manifest.files_by_place()
        wanted = [
            self._choose_files(by_place.get(each.place, []), last=each is missing[-1])
            for each in missing
        ]
        runs = self._manifest.runs if self._same and missing else ()
        check_files(self._folder, (*(file for files in wanted for file in files), *runs))
        total = sum(map(len, wanted)) + len(runs)
        done = 0
        for stretch, files in zip(missing, wanted, strict=True):
            last = stretch is missing[-1]
            for file in (*files, *(runs if last else ())):
                copy_file(self._folder, self._lake_dir, file)
                done += 1
                on_file(done, total)
            commit = self._describe(state, stretch, files, runs if last and self._same else None)
            append_commit(self._lake_dir, state, commit)
            state = read_state(self._lake_dir)
        added = [file for files in wanted for file in files]
        return ImportReport(
            commits=len(missing),
            files=total,
            bytes=sum(file.bytes for file in (*added, *runs)),
            rows=sum(file.rows for file in added),
            ranges=tuple((each.first_mc_seqno, each.last_mc_seqno) for each in missing),
            derive=not self._same and (bool(missing) or _lacks_traces(state)),
        )

    def _choose_files(self, files: list[DataFile], *, last: bool) -> list[DataFile]:
        if not self._same:
            return [file for file in files if file.table not in SPANNING]
        return [*files, *(self._manifest.open_files if last else ())]

    def _describe(
        self,
        state: LogState,
        stretch: Stretch,
        files: list[DataFile],
        runs: tuple[DataFile, ...] | None,
    ) -> Commit:
        return Commit(
            number=state.number + 1,
            first_mc_seqno=stretch.first_mc_seqno,
            last_mc_seqno=stretch.last_mc_seqno,
            day=stretch.day,
            added=tuple(files),
            removed=(),
            schema_version=SCHEMA_VERSION,
            source={"import": self._digest},
            shards=stretch.shards,
            zero_state=stretch.zero_state,
            network=self._manifest.network,
            previous=state.digest,
            runs=runs,
        )
