"""Copies a lake from another: first its log, then its files by digest, then all commits at once.

The source is a folder, object storage or a web server, and is not trusted: its log is validated
before anything is copied (``check``), a file gets its name only once its bytes match the digest,
and the log of the copy advances only once all files have arrived.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tonlake.lake.commit.adopt import adopt_entries, fill_log
from tonlake.lake.errors import CommitConflict, LakeCorrupt, PieceRefused, SourceRefused
from tonlake.lake.log.crash import reach
from tonlake.lake.log.disk import LOCK_FILE, hold_lock, make_folder, write_file
from tonlake.lake.log.envelope import encode_entry
from tonlake.lake.log.own import adopt_definitions
from tonlake.lake.log.ranges import Range
from tonlake.lake.log.reader import LogReader
from tonlake.lake.log.selection import SELECTION_FILE, WHOLE, Selection, read_selection
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import LOG_FOLDER, SEGMENT_FOLDER
from tonlake.lake.storage.storage import open_storage, work_through
from tonlake.lake.storage.web import WebFolder, is_web
from tonlake.lake.transfer.check import check_files
from tonlake.lake.transfer.entries import (
    STAGING_FOLDER,
    StagedLog,
    fetch_definitions,
    fetch_selection,
)
from tonlake.lake.transfer.manifest import copy_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tonlake.lake.log.state import DataFile, LogState
    from tonlake.lake.storage.storage import Source

PULL_LOCK = f"{STAGING_FOLDER}/lock"


class PullReport(msgspec.Struct, frozen=True):
    """The commit of the copy, what was new, and its selection of days and tables."""

    snapshot: int
    commits: int
    files: int
    bytes: int
    rows: int
    ranges: tuple[Range, ...]
    selection: Selection


@contextmanager
def open_pull(
    place: Path | str,
    lake_dir: Path,
    selection: Selection = WHOLE,
    *,
    key: str = "",
    on_file: Callable[[int, int], None] = lambda _done, _all: None,
) -> Iterator[Puller]:
    """Yield a puller that copies the lake at ``place``, once or repeatedly, into a folder.

    Running the same command again resumes. Without ``selection``, a partial copy keeps its own.
    ``key`` is the API key of a service; ``on_file`` is called with the number of files done and
    of all.

    Raises:
        PieceRefused: the copy has other days or tables, or another process copies into it.
        SourceRefused: the source's description of itself is damaged.
        StorageError: the source cannot be reached.
        LakeFull: no room.
    """
    with ExitStack() as stack:
        make_folder(lake_dir / STAGING_FOLDER / LOG_FOLDER)
        make_folder(lake_dir / LOG_FOLDER)
        if not stack.enter_context(hold_lock(lake_dir / PULL_LOCK, wait=False)):
            raise PieceRefused(f"another process copies into {lake_dir}: one at a time")
        source: Source
        if isinstance(place, str) and is_web(place):
            source = web = WebFolder(place, key)
            stack.callback(web.close)
        else:
            source = open_storage(place)
        with hold_lock(lake_dir / LOCK_FILE):
            fill_log(lake_dir, lake_dir / STAGING_FOLDER)
        chosen = _settle_selection(source, lake_dir, selection)
        yield Puller(source, lake_dir, chosen, on_file)


def _settle_selection(source: Source, lake_dir: Path, wanted: Selection) -> Selection:
    """Return the selection of the copy, and store it if it is partial.

    Raises:
        PieceRefused: the copy has another selection than the one requested.
    """
    known = read_selection(lake_dir)
    if LogReader(lake_dir).read().number:
        if wanted not in (WHOLE, known):
            raise PieceRefused(
                f"{lake_dir} has {_describe(known)} of its source, but "
                f"{_describe(wanted)} was requested: pull that into a new folder"
            )
        return known
    chosen = fetch_selection(source).narrow(wanted)
    if chosen != known:
        StagedLog(source, lake_dir, chosen).clear()
        note = lake_dir / SELECTION_FILE
        if chosen == WHOLE:
            note.unlink()
        else:
            write_file(note, encode_entry(chosen)[0], "file")
    return chosen


def _describe(selection: Selection) -> str:
    first, last = selection.first_day, selection.last_day
    days = f"days {first or ''}..{last or ''}" if first or last else "all days"
    tables = "all tables" if selection.tables is None else f"tables {', '.join(selection.tables)}"
    return f"{days}, {tables}"


class Puller:
    """Copies what the source has beyond the copy; see ``open_pull``."""

    def __init__(
        self,
        source: Source,
        lake_dir: Path,
        selection: Selection,
        on_file: Callable[[int, int], None],
    ) -> None:
        """Take both ends; nothing is copied yet."""
        self.lake_dir = lake_dir
        self._source, self._target = source, open_storage(lake_dir)
        self._selection, self._on_file = selection, on_file
        self._staged = StagedLog(source, lake_dir, selection)
        self._log = LogReader(lake_dir)

    def bring(self) -> PullReport:
        """Copy and report all new commits, including those that undo blocks.

        Raises:
            SourceRefused: data of the source was rejected; the copy is unchanged.
            PieceRefused: the source holds no lake, or nothing of the selection.
            LakeFull, StorageError: no room; the source cannot be reached.
            CommitConflict: another writer committed to the copy meanwhile.
        """
        state = self._log.read()
        target = self._staged.read_on(state, lambda _number: None)
        files: list[DataFile] = []
        if target.number > state.number:
            with hold_lock(self.lake_dir / LOCK_FILE):
                if self._log.read().digest != state.digest:
                    raise CommitConflict(f"another writer committed to {self.lake_dir}")
                target, files = self._copy(state, target)
                adopt_entries(self.lake_dir, self._staged.folder, state, target)
            if not state.number:
                adopt_definitions(self.lake_dir, fetch_definitions(self._source))
        elif not state.number:
            raise PieceRefused(
                f"{self._source.name} holds no lake: it has no {LOG_FOLDER}/1.json (an export is "
                "imported with tonlake import)"
            )
        return PullReport(
            snapshot=target.number,
            commits=target.number - state.number,
            files=len(files),
            bytes=sum(file.bytes for file in files),
            rows=sum(file.rows for file in files if file.table != SEGMENT_FOLDER),
            ranges=target.ranges,
            selection=self._selection,
        )

    def check_newest(self) -> None:
        """Compare the newest commit of the copy with that of the source.

        Raises:
            SourceRefused: the source was rolled back, or is another lake.
            StorageError: it cannot be reached.
        """
        self._staged.check_newest(self._log.read())

    def _check_ranges(self, target: LogState) -> None:
        if not target.ranges:
            raise PieceRefused(f"{self._source.name} has no blocks of {_describe(self._selection)}")

    def _copy(self, state: LogState, target: LogState) -> tuple[LogState, list[DataFile]]:
        """Copy what ``target`` has beyond ``state``, and return the final state and files.

        A file may have disappeared because the source merged it meanwhile; its log has advanced.
        """
        copied = Snapshot(self.lake_dir, state)
        while True:
            self._check_ranges(target)
            files = copied.list_new(target)
            try:
                self._copy_files(files)
            except LakeCorrupt as error:
                newer = self._staged.read_on(target, lambda _number: None)
                live = {file.path for file in (*newer.files, *newer.segments)}
                if newer.number == target.number or error.file in live:
                    raise SourceRefused(error.file, error.reason) from error
                target = newer
            else:
                return target, files

    def _copy_files(self, files: list[DataFile]) -> None:
        """Copy files and verify them against the log; skip those that exist."""
        standing = self._target.list_files(sorted({file.table for file in files}))
        copy = partial(copy_file, self._source, self._target, standing=standing)
        for done, _ in enumerate(work_through(copy, files, self._source), 1):
            reach("pull.copied")
            self._on_file(done, len(files))
        check_files(self._target, files)
