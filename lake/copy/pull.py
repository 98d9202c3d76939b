"""Copies a lake from another: first its log, then its files by digest, then all commits at once.

The source is a folder, object storage or a web server, and is not trusted: entries must follow each
other, paths must match digests, a file gets its name only once its bytes match the digest, and the
log of the copy advances only once all files have arrived. A partial copy has of each entry the part
that it selects, and in it the digest of the source's whole entry. The copy is a folder, or object
storage.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec
from pyarrow.fs import FileInfo, FileType

from tonlake.lake.commit.commit import CHECKPOINT_COMMITS, list_surplus
from tonlake.lake.copy.source import ANOTHER, ORIGIN, Copied, SourceLog, Start, fetch_body
from tonlake.lake.duck.own import DEFINITIONS_FILE, OwnTables, check_name
from tonlake.lake.errors import CommitConflict, CopyRefused, LakeCorrupt, SourceRefused
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.disk import (
    LOCK_FILE,
    begin_grace,
    hold_lock,
    make_folder,
    naming_full_disk,
    reach,
    sync_folder,
)
from tonlake.lake.log.envelope import encode_entry, parse_body
from tonlake.lake.log.place import list_stored
from tonlake.lake.log.ranges import Range
from tonlake.lake.log.snapshot import SELECTION_FILE, WHOLE, Selection, Snapshot, read_selection
from tonlake.lake.log.state import (
    FIRST_FILE,
    LOG_FOLDER,
    SEGMENT_FOLDER,
    Commit,
    DataFile,
    FirstEntry,
    LogState,
    checkpoint_name,
    entry_name,
    number_names,
    read_commit,
    read_state,
)
from tonlake.lake.storage.storage import (
    Source,
    Storage,
    WebFolder,
    fetch_log,
    is_web,
    list_log_names,
    open_storage,
    work_through,
)
from tonlake.lake.system import sync

STAGING_FOLDER = "_pull"
"""Holds the entries that are not yet part of the copy's log; its presence marks a copy."""

PULL_LOCK = f"{STAGING_FOLDER}/lock"
SUMMED_COMMITS = 500
"""Commits held in memory before they are added to the state."""


class PullReport(msgspec.Struct, frozen=True):
    """The commit of the copy, what was new, and its selection of days and tables."""

    snapshot: int
    commits: int
    files: int
    bytes: int
    rows: int
    ranges: tuple[Range, ...]
    selection: Selection


def copy_lake(
    place: Path | str,
    target: Path | str,
    selection: Selection = WHOLE,
    *,
    key: str = "",
    on_file: Callable[[int, int], None] = lambda _done, _all: None,
) -> PullReport:
    """Copy what is new in a lake once; parameters as ``open_pull``."""
    with open_pull(place, target, selection, key=key, on_file=on_file) as puller:
        report = puller.bring()
        puller.check_newest()
    return report


@contextmanager
def open_pull(
    place: Path | str,
    target: Path | str,
    selection: Selection = WHOLE,
    *,
    key: str = "",
    on_file: Callable[[int, int], None] = lambda _done, _all: None,
) -> Iterator["Puller"]:
    """Yield a puller that copies the lake at ``place``, once or repeatedly.

    ``target`` is a folder, or ``s3://bucket/prefix``, into which one process may copy at a time.
    Running the same command again resumes. Without ``selection``, a partial copy keeps its own.
    ``key`` is the API key of a service; ``on_file`` takes the number of files done and of all.
    """
    with ExitStack() as stack:
        source: Source
        if isinstance(place, str) and is_web(place):
            source = web = WebFolder(place, key)
            stack.callback(web.close)
        else:
            source = open_storage(place)
        storage = open_storage(target)
        if storage.is_local:
            folder = Path(target)
        else:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="tonlake-pull-")))
        if storage.is_local and Path(source.name).resolve() == folder.resolve():
            raise CopyRefused(f"{folder} is the source itself: name another folder")
        make_folder(folder / STAGING_FOLDER)
        make_folder(folder / LOG_FOLDER)
        if not stack.enter_context(hold_lock(folder / PULL_LOCK, wait=False)):
            raise CopyRefused(f"another process copies into {folder}: one at a time")
        copy = _Copy(storage, folder)
        yield Puller(source, copy, _settle_selection(source, copy, selection), on_file)


class _Reached(NamedTuple):
    """A state of the copy, the source's digest of its entry, and the log's new start, if any."""

    state: LogState
    origin: str
    start: Start | None = None


class _Copy:
    """The lake that is written; in object storage, ``folder`` has what is needed of its log."""

    def __init__(self, storage: Storage, folder: Path) -> None:
        """Read the log up to the first entry that an interrupted process did not get to."""
        self.storage, self.folder = storage, folder
        for path in (folder / STAGING_FOLDER).glob("*.json"):
            path.unlink()
        names = list_log_names(storage)
        entries = number_names(names)[0]
        self.newest = entries[-1] if entries else 0
        self._first, sound = 1, 0
        if FIRST_FILE.rpartition("/")[2] in names:
            self._first = parse_body(FIRST_FILE, storage.read(FIRST_FILE), FirstEntry)[0].number
        for number in entries:
            if number == max(self._first, sound + 1):
                sound = number
        if not storage.is_local:
            fetch_log(storage, names, sound, folder)
        state = read_state(folder, sound) if sound else LogState()
        commit = read_commit(folder, sound)[0] if sound else None
        origin = commit.source.get(ORIGIN, state.digest) if commit else ""
        self.reached = _Reached(state, origin)

    def check_fit(self, start: Start | None) -> None:
        """Check that the staged entries continue the log; the caller holds the lock."""
        newest = f"{LOG_FOLDER}/{entry_name(self.newest)}"
        following = f"{LOG_FOLDER}/{entry_name(self.newest + 1)}"
        if self.storage.find(following).type != FileType.NotFound:
            raise CommitConflict(f"another writer committed to {self.storage.name}")
        is_filling = self.newest > self.reached.state.number
        is_filling = is_filling and (start is None or self.newest > start.state.number)
        if is_filling and self.locate(self.newest).read_bytes() != self.storage.read(newest):
            raise SourceRefused(newest, ANOTHER)

    def read_newest(self) -> Start:
        """Return the newest entry as a start of the log: an interrupted process left its state."""
        folder, number = self.folder, self.newest
        if not self.storage.is_local:
            fetch_log(self.storage, list_log_names(self.storage), number, folder)
        commit, digest = read_commit(folder, number)
        data = (folder / LOG_FOLDER / entry_name(number)).read_bytes()
        entry = Copied(commit, digest, data, commit.source.get(ORIGIN, digest))
        return Start(read_state(folder, number), entry)

    def adopt(self, after: _Reached) -> None:
        """Make the staged entries part of the log, all at once for every reader.

        Files of commits in between may be gone, so no reader may take one for the newest: that
        comes first, with its checkpoint, and the one that a reader waits for comes last.
        """
        before, state = self.reached.state, after.state
        start = after.start
        numbers = range(start.state.number if start else before.number + 1, state.number + 1)
        # Staged entries are durable before the newest one makes the others necessary.
        if len(numbers) > 1:
            os.sync()  # syncing a hundred thousand files one by one takes minutes
        else:
            with self.locate(numbers[0]).open("rb") as stream:
                sync(stream.fileno())
        reach("pull.synced")
        replaced = sorted(before.stored - state.stored)
        begin_grace(self.folder, replaced)
        due = state.number - state.number % CHECKPOINT_COMMITS
        needed = [start.state] if start else []
        if due > before.number or len(numbers) > 1:
            needed.append(state)
        for each in needed:
            name = f"{LOG_FOLDER}/{checkpoint_name(each.number)}"
            self.storage.replace(name, encode_entry(each)[0])
        self._add_entries(numbers)
        if start:
            self._begin_at(start.state.number)
        surplus = [state.number]
        if due > before.number:
            surplus = list_surplus(number_names(list_log_names(self.storage))[1], due)
        for number in {*surplus} - {self._first}:
            self.storage.remove(f"{LOG_FOLDER}/{checkpoint_name(number)}")
        for path in replaced if not self.storage.is_local else ():
            self.storage.remove(path)
        self.reached, self.newest = after._replace(start=None), state.number

    def _add_entries(self, numbers: range) -> None:
        """Move staged entries to the log: the newest one first, the oldest last."""
        for group in (numbers[-1:], numbers[-2:0:-1], numbers[:-1][:1]):
            for number in work_through(self._add_entry, group, self.storage):
                reach("pull.adopted" if number == numbers[-1] else "pull.filled")
            if self.storage.is_local:
                sync_folder(self.folder / LOG_FOLDER)

    def _begin_at(self, first: int) -> None:
        """Remove the entries and checkpoints before ``first``, which has both."""
        self._first = first
        self.storage.replace(FIRST_FILE, encode_entry(FirstEntry(first))[0])
        entries, checkpoints = number_names(list_log_names(self.storage))
        gone = [checkpoint_name(number) for number in checkpoints if number < first]
        gone += [entry_name(number) for number in entries if number < first]
        for name in gone:
            self.storage.remove(f"{LOG_FOLDER}/{name}")

    def _add_entry(self, number: int) -> int:
        """Move a staged entry to the log; an interrupted process may have done so before."""
        staged, name = self.locate(number), f"{LOG_FOLDER}/{entry_name(number)}"
        if self.storage.is_local:
            staged.replace(self.folder / name)
        else:
            self.storage.replace(name, staged.read_bytes())
        return number

    def locate(self, number: int) -> Path:
        """Return the path of an entry until ``adopt`` makes it part of the log."""
        return self.folder / STAGING_FOLDER / entry_name(number)


def _settle_selection(source: Source, copy: _Copy, wanted: Selection) -> Selection:
    """Return the selection of the copy."""
    known = read_selection(copy.folder)
    if copy.newest:
        if wanted not in (WHOLE, known):
            raise CopyRefused(
                f"{copy.storage.name} has {_describe(known)} of its source, but "
                f"{_describe(wanted)} was requested: pull that into a new folder"
            )
        return known
    found = fetch_body(source, SELECTION_FILE, Selection)
    return wanted if found is None else found[0].narrow(wanted)


def _describe(selection: Selection) -> str:
    first, last = selection.first_day, selection.last_day
    days = f"days {first or ''}..{last or ''}" if first or last else "all days"
    tables = "all tables" if selection.tables is None else f"tables {', '.join(selection.tables)}"
    return f"{days}, {tables}"


class Puller:
    """Copies what the source has beyond the copy."""

    def __init__(
        self, source: Source, copy: _Copy, selection: Selection, on_file: Callable[[int, int], None]
    ) -> None:
        self.lake_dir = copy.folder
        self._source, self._copy = source, copy
        self._selection, self._on_file = selection, on_file
        self._log = SourceLog(source, selection)
        self._is_current = False

    def bring(self) -> PullReport:
        """Copy and report all new commits, also those that undo blocks.

        Raises SourceRefused, CopyRefused, LakeFull, StorageError, CommitConflict.
        """
        before = self._copy.reached.state
        after = self._read_on(self._copy.reached)
        files: list[DataFile] = []
        if after.state.number < self._copy.newest:
            self._log.check_newest(self._copy.newest, "")
        elif after.state.number > before.number:
            with hold_lock(self.lake_dir / LOCK_FILE):
                self._copy.check_fit(after.start)
                after, files = self._copy_until(after)
                if not before.number:
                    self._store_selection()
                    self._copy_definitions()
                self._copy.adopt(after)
        elif not before.number:
            raise CopyRefused(
                f"{self._source.name} holds no lake: it has no {LOG_FOLDER}/1.json, or does not "
                "show it (a service shows it with [access] publish, and may require [pull] key)"
            )
        return PullReport(
            snapshot=after.state.number,
            commits=after.state.number - before.number,
            files=len(files),
            bytes=sum(file.bytes for file in files),
            rows=sum(file.rows for file in files if file.table != SEGMENT_FOLDER),
            ranges=after.state.ranges,
            selection=self._selection,
        )

    def check_newest(self) -> None:
        """Compare the newest commit of the copy with that of the source."""
        reached, self._is_current = self._copy.reached, False
        self._log.check_newest(reached.state.number, reached.origin)

    def _read_on(self, reached: _Reached) -> _Reached:
        """Stage the entries that the source has beyond a state; return the state after them."""
        state, origin, start = reached
        waiting: list[tuple[Commit, str]] = []
        for entry in self._log.read_after(state, origin):
            self._stage(entry)
            waiting.append((entry.commit, entry.digest))
            origin = entry.origin
            if len(waiting) == SUMMED_COMMITS:
                state, waiting = state.add(*waiting), []
        if origin == reached.origin:
            start = None if self._is_current else self._log.find_start(state)
            self._is_current = start is None
            if start is None:
                return reached
            if self._selection != WHOLE and start.state.number <= self._copy.newest:
                # Without the entries before, the part of these would get another digest.
                start = self._copy.read_newest()
                self._log.check_newest(start.state.number, start.entry.origin)
            self._stage(start.entry)
            return self._read_on(_Reached(start.state, start.entry.origin, start))
        self._is_current = False
        state = state.add(*waiting)
        paths = Counter(file.path for file in (*state.files, *state.segments))
        if paths and max(paths.values()) > 1:
            raise SourceRefused(max(paths, key=paths.__getitem__), "the log adds it twice")
        after = _Reached(state, origin, start)
        # A log that was shortened meanwhile has the rest after its new start.
        return after if state.number >= self._copy.newest else self._read_on(after)

    def _stage(self, entry: Copied) -> None:
        path = self._copy.locate(entry.commit.number)
        with naming_full_disk(path):
            path.write_bytes(entry.data)
        reach("pull.staged")

    def _copy_until(self, after: _Reached) -> tuple[_Reached, list[DataFile]]:
        """Copy what a state has, or a newer one if files were merged; return state and files."""
        copied = Snapshot(self.lake_dir, self._copy.reached.state)
        while True:
            if not after.state.ranges:
                raise CopyRefused(
                    f"{self._source.name} has no blocks of {_describe(self._selection)}"
                )
            files = copied.list_new(after.state)
            try:
                self._copy_files(list_stored(files))
            except LakeCorrupt as error:
                newer = self._read_on(after)
                is_newest = newer.state.number == after.state.number
                if is_newest or error.file in newer.state.stored:
                    raise SourceRefused(error.file, error.explain()) from error
                after = newer
            else:
                return after, files

    def _copy_files(self, files: Sequence[DataFile]) -> None:
        """Copy files, and skip those that exist."""
        target = self._copy.storage
        folders = () if target.is_local else sorted({file.table for file in files})
        copy = partial(copy_file, self._source, target, standing=target.list_files(folders))
        for done, _ in enumerate(work_through(copy, files, self._source, target), 1):
            reach("pull.copied")
            self._on_file(done, len(files))

    def _store_selection(self) -> None:
        """Store what a partial copy has; without commits it would bind a lake ingested later."""
        if self._selection == WHOLE:
            self._copy.storage.remove(SELECTION_FILE)
        else:
            self._copy.storage.replace(SELECTION_FILE, encode_entry(self._selection)[0])

    def _copy_definitions(self) -> None:
        """Copy the definitions of user-defined tables; their rows come with the next refresh."""
        found = fetch_body(self._source, DEFINITIONS_FILE, OwnTables)
        if found is not None:
            definitions, _digest, data = found
            for table in definitions.tables:
                check_name(table.name, ())
            self._copy.storage.replace(DEFINITIONS_FILE, data)


def copy_file(
    source: Source, target: Storage, file: DataFile, standing: Mapping[str, FileInfo]
) -> None:
    """Copy one file and verify its digest, unless the target has it.

    An object ``standing`` with the right size is one: its last bytes followed the check.
    """
    if target.is_local:
        is_there = not find_damage(Path(target.root), [file])
    else:
        is_there = file.path in standing and standing[file.path].size == file.bytes
    if not is_there:
        target.write(file.path, _read_chunks(source, file), file.sha256)


def _read_chunks(source: Source, file: DataFile) -> Iterator[bytes]:
    """Yield the bytes of a file; stop reading one that is larger than it should be."""
    size = 0
    try:
        with closing(source.chunks(file.path)) as chunks:
            for chunk in chunks:
                size += len(chunk)
                if size > file.bytes:
                    raise LakeCorrupt(file.path, f"it has more than {file.bytes} bytes")
                yield chunk
    except OSError as error:
        raise LakeCorrupt.unreadable(file.path, error) from error
    if size < file.bytes:
        raise LakeCorrupt(file.path, f"it has {size} bytes instead of {file.bytes}")
