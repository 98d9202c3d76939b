"""Reads a source's log entry by entry, and stages validated entries until their files are copied.

Entries are staged as the copy will have them: those of the source, byte for byte, or, in a partial
copy, their selected part. They are in ``_pull/_log``, beside the copy's own log.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from tonlake.lake.errors import LakeCorrupt, NetworkMismatch, PieceRefused, SourceRefused
from tonlake.lake.log.crash import reach
from tonlake.lake.log.disk import make_folder, naming_full_disk, unfinished
from tonlake.lake.log.envelope import encode_entry, parse_body
from tonlake.lake.log.network import join_networks
from tonlake.lake.log.own import DEFINITIONS_FILE, OwnTable, OwnTables
from tonlake.lake.log.selection import SELECTION_FILE, WHOLE, Selection
from tonlake.lake.log.state import (
    LOG_FOLDER,
    Commit,
    LogState,
    entry_name,
    list_log,
    read_commit,
)
from tonlake.lake.storage.storage import work_through
from tonlake.lake.transfer.check import check_commit, check_selection
from tonlake.lake.transfer.part import ORIGIN, change_ranges, select_commit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tonlake.lake.log.network import Network
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.storage.storage import Source

STAGING_FOLDER = "_pull"
ENTRY_BYTES = 256 << 20
"""Largest accepted entry: one that lists half a million files."""

SUMMED_COMMITS = 500
"""Commits held in memory before they are added to the state."""

MAX_AT_ONCE = 32
_CHUNK_BYTES = 1 << 20


def read_source(source: Source, path: str) -> bytes | None:
    """Return the bytes of a small file of a source; None if it does not exist.

    Raises:
        PermissionError: the server does not say whether it exists.
        SourceRefused: it cannot be read, or is too large.
        StorageError: the source cannot be reached.
    """
    data = bytearray()
    try:
        with source.open(path) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                data += chunk
                if len(data) > ENTRY_BYTES:
                    raise SourceRefused(path, f"it has more than {ENTRY_BYTES} bytes")
    except FileNotFoundError:
        return None
    except PermissionError:
        raise
    except OSError as error:
        raise SourceRefused(path, f"it cannot be read ({error})") from error
    return bytes(data)


def fetch_selection(source: Source) -> Selection:
    """Return the selection of a source, ``WHOLE`` if it is complete; raises as above."""
    try:
        data = read_source(source, SELECTION_FILE)
    except PermissionError:  # some servers respond so if it does not exist
        return WHOLE
    if data is None:
        return WHOLE
    try:
        found = parse_body(SELECTION_FILE, data, Selection)[0]
        check_selection(found)
    except LakeCorrupt as error:
        raise SourceRefused(error.file, error.reason) from error
    except PieceRefused as error:
        raise SourceRefused(SELECTION_FILE, str(error)) from error
    return found


def fetch_definitions(source: Source) -> tuple[OwnTable, ...]:
    """Return the definitions of user-defined tables of a source; raises as above."""
    try:
        data = read_source(source, DEFINITIONS_FILE)
    except PermissionError:  # some servers respond so if it does not exist
        return ()
    try:
        return () if data is None else parse_body(DEFINITIONS_FILE, data, OwnTables)[0].tables
    except LakeCorrupt as error:
        raise SourceRefused(error.file, error.reason) from error


class _Sum:
    """A state, and the commits still to be added to it."""

    def __init__(self, state: LogState) -> None:
        self._state = state
        self._waiting: list[tuple[Commit, str]] = []
        self.number, self.digest = state.number, state.digest
        self.ranges: tuple[Range, ...] = state.ranges
        self.network: Network | None = state.network

    def add(self, commit: Commit, digest: str) -> None:
        self._waiting.append((commit, digest))
        self.number, self.digest = commit.number, digest
        self.ranges = change_ranges(self.ranges, commit)
        self.network = join_networks(self.network, commit.network)
        if len(self._waiting) >= SUMMED_COMMITS:
            self.finish()

    def finish(self) -> LogState:
        self._state = self._state.add(*self._waiting)
        self._waiting = []
        return self._state


class StagedLog:
    """The entries of a source that a copy does not have yet."""

    def __init__(self, source: Source, lake_dir: Path, selection: Selection) -> None:
        """Take the source, the copy's folder, and the selection of the copy."""
        self._source, self._selection = source, selection
        self.folder = lake_dir / STAGING_FOLDER
        self._origin: tuple[str, str] | None = None
        self._is_resumed = False
        make_folder(self.folder / LOG_FOLDER)

    def read_on(self, state: LogState, on_entry: Callable[[int], None]) -> LogState:
        """Return the state after all entries that the source has beyond ``state``.

        The entries are staged. ``on_entry`` is called with the number of each. Entries staged by an
        earlier run are not fetched again, unless the source no longer has them.

        Raises:
            SourceRefused: an entry is damaged, does not follow the previous one, or is impossible.
            LakeTooNew: a later version of this program wrote an entry.
            LakeFull, StorageError: no room; the source cannot be reached.
        """
        self._is_resumed = False
        try:
            return self._read_on(state, on_entry)
        except SourceRefused:
            if not self._is_resumed:
                raise
            self.clear()
            return self._read_on(state, on_entry)

    def clear(self) -> None:
        """Remove all staged entries."""
        for number in list_log(self.folder)[0]:
            (self.folder / LOG_FOLDER / entry_name(number)).unlink()

    def _read_on(self, state: LogState, on_entry: Callable[[int], None]) -> LogState:
        total, origin = _Sum(state), self._find_origin(state)
        at_once = 1
        while True:
            numbers = range(total.number + 1, total.number + 1 + at_once)
            at_once = min(2 * at_once, MAX_AT_ONCE)
            for data in work_through(self._read, numbers, self._source):
                if data is None:
                    return self._finish(state, total, origin)
                commit, digest, origin = self._accept(total, data, origin)
                total.add(commit, digest)
                on_entry(commit.number)

    def _finish(self, state: LogState, total: _Sum, origin: str) -> LogState:
        if total.number == state.number:
            return state
        found = total.finish()
        self._origin = found.digest, origin
        if self._is_resumed:
            self.check_newest(found)
        counts = Counter(file.path for file in (*found.files, *found.segments))
        path, count = counts.most_common(1)[0] if counts else ("", 0)
        if count > 1:
            raise SourceRefused(path, f"the log adds it {count} times")
        return found

    def _find_origin(self, state: LogState) -> str:
        """Return the source's digest of the newest entry of a state."""
        if self._selection == WHOLE or not state.number:
            return state.digest
        if self._origin is not None and self._origin[0] == state.digest:
            return self._origin[1]
        commit, _digest = read_commit(self._find_folder(state.number), state.number)
        return commit.source.get(ORIGIN, "")

    def _find_folder(self, number: int) -> Path:
        staged = (self.folder / LOG_FOLDER / entry_name(number)).exists()
        return self.folder if staged else self.folder.parent

    def check_newest(self, state: LogState) -> None:
        """Check that the source still has the newest entry of the copy.

        Raises:
            SourceRefused: it has another entry, or none; StorageError: it cannot be reached.
        """
        file = f"{LOG_FOLDER}/{entry_name(state.number)}"
        try:
            data = read_source(self._source, file)
        except PermissionError as error:
            raise SourceRefused(file, f"the server refuses it ({error})") from error
        if data is None:
            raise SourceRefused(
                file,
                f"it is missing, but the copy has {state.number} commits: the source was rolled "
                "back, or is another lake",
            )
        if self._parse(file, data)[1] != self._find_origin(state):
            raise SourceRefused(file, _ANOTHER)

    def _read(self, number: int) -> bytes | None:
        """Return the bytes of an entry, staged or fetched; None after the last."""
        file = f"{LOG_FOLDER}/{entry_name(number)}"
        try:
            return (self.folder / file).read_bytes()
        except FileNotFoundError:
            pass
        try:
            return read_source(self._source, file)
        except PermissionError:
            if number == 1:
                raise SourceRefused(file, "the server refuses it: set [pull] key") from None
            return None  # object storage responds so about a missing object if listing is denied

    def _parse(self, file: str, data: bytes) -> tuple[Commit, str]:
        try:
            return parse_body(file, data, Commit)
        except LakeCorrupt as error:
            raise SourceRefused(error.file, error.reason) from error

    def _accept(self, total: _Sum, data: bytes, origin: str) -> tuple[Commit, str, str]:
        """Check and stage an entry; return it, its digest, and the digest of the source's entry."""
        number = total.number + 1
        file = f"{LOG_FOLDER}/{entry_name(number)}"
        staged = self.folder / file
        self._is_resumed = self._is_resumed or staged.exists()
        commit, digest = self._parse(file, data)
        if commit.number != number:
            raise SourceRefused(file, f"it is commit {commit.number}")
        if staged.exists():
            if commit.previous != total.digest:
                raise SourceRefused(file, _ANOTHER)
            whole = self._selection == WHOLE
            return commit, digest, digest if whole else commit.source.get(ORIGIN, "")
        if commit.previous != origin:
            raise SourceRefused(file, _ANOTHER if total.number else "it is not a first entry")
        try:
            check_commit(commit, total.ranges)
            join_networks(total.network, commit.network)
        except (PieceRefused, NetworkMismatch) as error:
            raise SourceRefused(file, str(error)) from error
        kept, own = commit, digest
        if self._selection != WHOLE:
            kept = select_commit(commit, digest, self._selection, total.ranges)
            kept = msgspec.structs.replace(kept, previous=total.digest)
            data, own = encode_entry(kept)
        with naming_full_disk(staged), unfinished(staged) as path:
            path.write_bytes(data)
        reach("pull.staged")
        return kept, own, digest


_ANOTHER = (
    "it is not the entry that the copy has, or does not follow it: the source is another lake, or "
    "was rolled back, or the copy has commits of its own; pull into a new folder"
)
