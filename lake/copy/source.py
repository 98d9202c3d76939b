"""The log of the lake that a copy is made of: its entries, checked, as the copy will have them."""

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple, TypeVar

import msgspec

from tonlake.lake.commit.commit import is_day
from tonlake.lake.errors import CopyRefused, LakeCorrupt, NetworkMismatch, SourceRefused
from tonlake.lake.index.builder.plan import range_of, segment_path
from tonlake.lake.log.envelope import encode_entry, parse_body
from tonlake.lake.log.place import (
    PACKED_ENDING,
    Place,
    describe_pack,
    is_data_path,
    path_at,
    read_place,
)
from tonlake.lake.log.ranges import Range, merge_ranges, overlaps, subtract_ranges
from tonlake.lake.log.snapshot import WHOLE, Selection
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
    join_networks,
)
from tonlake.lake.schema import BLOCKS, TABLES
from tonlake.lake.storage.storage import Source, work_through

ORIGIN = "pull"
"""Key in the ``source`` of a partial copy's commit: the digest of the source's entry."""

ENTRY_BYTES = 256 << 20
"""Largest accepted entry: one that lists half a million files."""

MAX_AT_ONCE = 32
ANOTHER = (
    "it is not the entry that the copy has, or does not follow it: the source is another lake, or "
    "was rolled back, or the copy has commits of its own; pull into a new folder"
)


class Copied(NamedTuple):
    """An entry as the copy will have it; ``origin`` is the digest of the source's entry."""

    commit: Commit
    digest: str
    data: bytes
    origin: str


class Start(NamedTuple):
    """What a shortened log begins with: the sum of all commits up to one, and its entry."""

    state: LogState
    entry: Copied


_Body = TypeVar("_Body", bound=msgspec.Struct)


def fetch_body(source: Source, path: str, kind: type[_Body]) -> tuple[_Body, str, bytes] | None:
    """Return body, digest and bytes of a small file; None if it is not shown, or denied."""
    data = bytearray()
    try:
        with closing(source.chunks(path)) as chunks:
            for chunk in chunks:
                data += chunk
                if len(data) > ENTRY_BYTES:
                    raise SourceRefused(path, f"it has more than {ENTRY_BYTES} bytes")
        return *parse_body(path, bytes(data), kind), bytes(data)
    except (FileNotFoundError, PermissionError):
        return None
    except OSError as error:
        raise SourceRefused(path, f"it cannot be read ({error})") from error
    except LakeCorrupt as error:
        raise SourceRefused(error.file, error.reason) from error


class SourceLog:
    """The log of a source, for a copy with a selection of its days and tables."""

    def __init__(self, source: Source, selection: Selection) -> None:
        self._source, self._selection = source, selection

    def read_after(self, state: LogState, origin: str) -> Iterator[Copied]:
        """Yield the entries after a state of the copy; ``origin`` is the source's digest of it."""
        number, previous = state.number, state.digest
        ranges, network, at_once = state.ranges, state.network, 1
        while True:
            numbers = range(number + 1, number + 1 + at_once)
            at_once = min(2 * at_once, MAX_AT_ONCE)
            for found in work_through(self._fetch, numbers, self._source):
                if found is None:
                    return
                (commit, digest, data), number = found, number + 1
                file = f"{LOG_FOLDER}/{entry_name(number)}"
                if (commit.number, commit.previous) != (number, origin):
                    raise SourceRefused(file, ANOTHER)
                try:
                    check_commit(commit, ranges)
                    network = join_networks(network, commit.network)
                except (CopyRefused, NetworkMismatch) as error:
                    raise SourceRefused(file, str(error)) from error
                entry = Copied(commit, digest, data, digest)
                if self._selection != WHOLE:
                    kept = select_commit(commit, digest, self._selection, ranges)
                    kept = msgspec.structs.replace(kept, previous=previous)
                    data, own = encode_entry(kept)
                    entry = Copied(kept, own, data, digest)
                yield entry
                origin, previous = digest, entry.digest
                ranges = change_ranges(ranges, entry.commit)

    def find_start(self, held: LogState) -> Start | None:
        """Return what the source's log begins with, if that is after a state of the copy."""
        while (first := self._fetch_first()) > held.number:
            file = f"{LOG_FOLDER}/{checkpoint_name(first)}"
            checkpoint, entry = fetch_body(self._source, file, LogState), self._fetch(first)
            if checkpoint is not None and entry is not None:
                return self._select_start(file, checkpoint[0], entry, held)
            if self._fetch_first() == first:  # else the source has removed more of its log
                raise SourceRefused(file, "it is missing, or its entry")
        return None

    def _select_start(
        self, file: str, state: LogState, found: tuple[Commit, str, bytes], held: LogState
    ) -> Start:
        commit, origin, data = found
        try:
            check_start(state, origin, held)
        except (CopyRefused, NetworkMismatch) as error:
            raise SourceRefused(file, str(error)) from error
        digest = origin
        if self._selection != WHOLE:
            commit = select_commit(commit, origin, self._selection, state.ranges)
            data, digest = encode_entry(commit)
            state = select_state(state, self._selection)
            state = msgspec.structs.replace(state, digest=digest)
        return Start(state, Copied(commit, digest, data, origin))

    def _fetch_first(self) -> int:
        pointer = fetch_body(self._source, FIRST_FILE, FirstEntry)
        return 0 if pointer is None else pointer[0].number

    def check_newest(self, number: int, origin: str) -> None:
        """Check that the source still has an entry of the copy, or begins after it."""
        file = f"{LOG_FOLDER}/{entry_name(number)}"
        found = self._fetch(number)
        if found is None and self._fetch_first() > number:
            return
        if found is None:
            raise SourceRefused(
                file,
                f"it is missing, but the copy has {number} commits: the source was rolled back, or"
                " is another lake",
            )
        if found[1] != origin:
            raise SourceRefused(file, ANOTHER)

    def _fetch(self, number: int) -> tuple[Commit, str, bytes] | None:
        return fetch_body(self._source, f"{LOG_FOLDER}/{entry_name(number)}", Commit)


def check_commit(commit: Commit, held: tuple[Range, ...]) -> None:
    """Reject a commit that is impossible in a lake with the blocks ``held``."""
    first, last = commit.first_mc_seqno, commit.last_mc_seqno
    if not 1 <= first <= last < 1 << 32:
        raise CopyRefused(f"{first}..{last} is not a range of masterchain blocks")
    if commit.has_blocks and overlaps(held, (first, last)):
        raise CopyRefused(f"the lake already has masterchain blocks {first}..{last}")
    if not is_day(commit.day):
        raise CopyRefused(f"{commit.day!r} is not a day")
    for path in commit.removed:
        _check_path(path)
    for file in (*commit.added, *(commit.segments or ())):
        _check_file(file)


def check_start(start: LogState, digest: str, held: LogState) -> None:
    """Reject what a source's log begins with if its digest differs, or it lacks blocks ``held``."""
    ranges = start.ranges
    if start.digest != digest:
        raise CopyRefused(f"it is not of entry {start.number}")
    if ranges != merge_ranges(ranges) or any(not 1 <= a <= b < 1 << 32 for a, b in ranges):
        raise CopyRefused(f"{ranges} are not the ranges of a lake")
    for file in (*start.files, *start.segments):
        _check_file(file)
    join_networks(held.network, start.network)
    undone = [
        (one.first_mc_seqno, one.last_mc_seqno)
        for one in start.undoings
        if one.commit > held.number
    ]
    if lost := subtract_ranges(held.ranges, (*ranges, *start.pruned_ranges, *undone)):
        raise CopyRefused(f"it lacks masterchain blocks {lost[0][0]}..{lost[0][1]}; {ANOTHER}")


def _check_file(file: DataFile) -> None:
    """Reject a file or an index segment with a path that does not follow from what it claims."""
    if file.table == SEGMENT_FOLDER:
        try:
            expected = segment_path(range_of(file), file.sha256)
        except ValueError:
            raise CopyRefused(f"{file.path!r} is not the path of a lake file") from None
    elif file.table in TABLES:
        ending = _check_pack(file) if file.pack else ".parquet"
        expected = path_at(file.table, _check_path(file.path), file.sha256, ending)
    else:
        raise CopyRefused(f"this version of tonlake does not know the table {file.table!r}")
    if file.path != expected:
        raise CopyRefused(f"{file.path!r} is not the path of a lake file: that is {expected!r}")
    if file.bytes <= 0 or file.rows < 0:
        raise CopyRefused(f"{file.path!r} claims {file.bytes} bytes and {file.rows} rows")


def _check_pack(file: DataFile) -> str:
    """Reject a file outside its pack, or a pack that no lake can have; return the file's ending."""
    try:
        pack = describe_pack(file.pack)[1]
    except ValueError:
        raise CopyRefused(f"{file.pack!r} is not the path of a lake file") from None
    if not 0 <= file.offset <= pack.bytes - file.bytes:
        raise CopyRefused(f"{file.path!r} is not within {file.pack!r}")
    return PACKED_ENDING


def _check_path(path: str) -> Place:
    """Return the place of a data file; refuse a path that no file of a lake can have."""
    if not is_data_path(path):
        raise CopyRefused(f"{path!r} is not the path of a lake file")
    place = read_place(path)
    if not is_day(place.day):
        raise CopyRefused(f"{place.day!r} is not a day")
    return place


def select_commit(
    commit: Commit, digest: str, selection: Selection, held: tuple[Range, ...]
) -> Commit:
    """Return the part of a source's commit that a partial copy with the blocks ``held`` has.

    That is the files of its days and tables, the baseline only if it is complete, and pruned ranges
    only with their kept rows. An index segment is kept if all of its days are selected and no table
    is left out. ``digest`` is that of the source's entry.
    """
    has_blocks = commit.has_blocks and selection.has_day(commit.day)
    has_all = all(selection.has(file.path) for file in commit.added)
    kept = msgspec.structs.replace(commit, has_blocks=has_blocks)
    ranges = change_ranges(held, kept)
    segments = commit.segments
    if segments is not None:
        whole = (each for each in segments if not subtract_ranges([range_of(each)], ranges))
        segments = () if selection.lacking else tuple(whole)
    return msgspec.structs.replace(
        kept,
        added=tuple(file for file in commit.added if selection.has(file.path)),
        removed=tuple(path for path in commit.removed if selection.has(path)),
        source={**commit.source, ORIGIN: digest},
        shards=commit.shards if has_blocks else {},
        segments=segments,
        pruned=_select_pruned(commit, selection, held),
        baseline=commit.baseline if has_all else msgspec.UNSET,
    )


def select_state(state: LogState, selection: Selection) -> LogState:
    """Return the part of a state that a partial copy has; as ``select_commit`` of all commits."""
    files = tuple(file for file in state.files if selection.has(file.path))
    gone = [file for file in state.files if not selection.has(file.path)]
    pruned = state.pruned
    if any(0 < read_place(file.path).last <= state.last_pruned for file in gone):
        pruned = msgspec.UNSET
    blocks = (read_place(file.path) for file in files if file.table == BLOCKS.name)
    ranges = merge_ranges(tuple((place.first, place.last) for place in blocks))
    ranges = subtract_ranges(ranges, state.pruned_ranges)
    whole = (each for each in state.segments if not subtract_ranges([range_of(each)], ranges))
    reported = subtract_ranges(ranges, subtract_ranges(ranges, state.reported_ranges))
    has_baseline = not any(read_place(file.path).is_baseline for file in gone)
    return msgspec.structs.replace(
        state,
        files=files,
        ranges=ranges,
        segments=() if selection.lacking else tuple(whole),
        pruned=pruned,
        baseline=state.baseline if has_baseline else msgspec.UNSET,
        reported=reported or msgspec.UNSET,
    )


def _select_pruned(
    commit: Commit, selection: Selection, held: tuple[Range, ...]
) -> tuple[Range, ...] | msgspec.UnsetType:
    """Return the pruned ranges of a commit if a partial copy may claim them.

    Kept rows belong to the last pruned day. If that day is not selected, the copy has no rows of
    pruned blocks: either all its days come later, or the prune removed all its blocks and is shown.
    """
    if commit.pruned is msgspec.UNSET or subtract_ranges(held, commit.pruned) != held:
        return commit.pruned
    last = commit.pruned[-1][1]
    kept = [at for file in commit.added if 0 < (at := read_place(file.path)).last <= last]
    return commit.pruned if all(selection.has_day(at.day) for at in kept) else msgspec.UNSET


def change_ranges(ranges: tuple[Range, ...], commit: Commit) -> tuple[Range, ...]:
    """Return the masterchain blocks of a lake after a commit, given those before it."""
    span = commit.first_mc_seqno, commit.last_mc_seqno
    if commit.has_blocks:
        return merge_ranges((*ranges, span))
    return subtract_ranges(ranges, [span]) if commit.undone else ranges
