"""Reads the log of a lake that is copied, entry by entry, and checks what each entry claims.

The source is not trusted: entries must follow each other, and paths must match digests. A partial
copy has of each entry the part that it selects, and in it the digest of the source's whole entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from tonlake.lake.commit.commit import is_day
from tonlake.lake.errors import CopyRefused, LakeCorrupt, NetworkMismatch, SourceRefused
from tonlake.lake.index.builder.place import range_of, segment_path
from tonlake.lake.log.envelope import encode_entry, parse_body
from tonlake.lake.log.place import path_at, read_place
from tonlake.lake.log.ranges import merge_ranges, overlaps, subtract_ranges
from tonlake.lake.log.snapshot import WHOLE
from tonlake.lake.log.state import LOG_FOLDER, SEGMENT_FOLDER, Commit, entry_name, join_networks
from tonlake.lake.schema import TABLES
from tonlake.lake.storage.storage import work_through

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tonlake.lake.log.place import Place
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.snapshot import Selection
    from tonlake.lake.log.state import DataFile, LogState
    from tonlake.lake.storage.storage import Source

ORIGIN = "pull"
"""Key in the ``source`` of a partial copy's commit: the digest of the source's entry."""

ENTRY_BYTES = 256 << 20
"""Largest accepted entry: one that lists half a million files."""

MAX_AT_ONCE = 32
SEQNO_LIMIT = 1 << 32
_CHUNK_BYTES = 1 << 20
ANOTHER = (
    "it is not the entry that the copy has, or does not follow it: the source is another lake, or "
    "was rolled back, or the copy has commits of its own; pull into a new folder"
)


class Entry(NamedTuple):
    """An entry as the copy will have it; ``origin`` is the digest of the source's entry."""

    commit: Commit
    digest: str
    data: bytes
    origin: str


_Body = TypeVar("_Body", bound=msgspec.Struct)


def fetch_body(source: Source, path: str, kind: type[_Body]) -> tuple[_Body, str, bytes] | None:
    """Return the body of a small file of a lake, its digest, and the file's bytes.

    None if the file does not exist, or the server does not show it: object storage refuses missing
    objects if listing is denied.

    Raises:
        SourceRefused: it is damaged, cannot be read, or is too large.
        LakeTooNew: a later version of this program wrote it.
        StorageError: the source cannot be reached.
    """
    data = bytearray()
    try:
        with source.open(path) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
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
        """Take the source and the copy's selection; nothing is read yet."""
        self._source, self._selection = source, selection

    def read_after(self, state: LogState, origin: str) -> Iterator[Entry]:
        """Yield the entries after a state of the copy; ``origin`` is the source's digest of it.

        Raises:
            SourceRefused: an entry is damaged, does not follow the one before, or is impossible.
            LakeTooNew: a later version of this program wrote an entry.
            StorageError: the source cannot be reached.
        """
        number, previous = state.number, state.digest
        ranges, network, at_once = state.ranges, state.network, 1
        while True:
            numbers = range(number + 1, number + 1 + at_once)
            at_once = min(2 * at_once, MAX_AT_ONCE)
            for found in work_through(self._fetch, numbers, self._source):
                if found is None:
                    return
                commit, digest, data = found
                number += 1
                file = f"{LOG_FOLDER}/{entry_name(number)}"
                if (commit.number, commit.previous) != (number, origin):
                    raise SourceRefused(file, ANOTHER)
                try:
                    check_commit(commit, ranges)
                    network = join_networks(network, commit.network)
                except (CopyRefused, NetworkMismatch) as error:
                    raise SourceRefused(file, str(error)) from error
                entry = Entry(commit, digest, data, digest)
                if self._selection != WHOLE:
                    kept = select_commit(commit, digest, self._selection, ranges)
                    kept = msgspec.structs.replace(kept, previous=previous)
                    data, own = encode_entry(kept)
                    entry = Entry(kept, own, data, digest)
                yield entry
                origin, previous = digest, entry.digest
                ranges = change_ranges(ranges, entry.commit)

    def check_newest(self, number: int, origin: str) -> None:
        """Check that the source still has an entry of the copy.

        Raises:
            SourceRefused: it has another entry, or none; StorageError: it cannot be reached.
        """
        file = f"{LOG_FOLDER}/{entry_name(number)}"
        found = self._fetch(number)
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
    """Reject a commit that is impossible in a lake with the blocks ``held``.

    Raises:
        CopyRefused: it lists paths outside a lake, unknown tables, or impossible blocks.
    """
    first, last = commit.first_mc_seqno, commit.last_mc_seqno
    if not 1 <= first <= last < SEQNO_LIMIT:
        raise CopyRefused(f"{first}..{last} is not a range of masterchain blocks")
    if commit.has_blocks and overlaps(held, (first, last)):
        raise CopyRefused(f"the lake already has masterchain blocks {first}..{last}")
    if not is_day(commit.day):
        raise CopyRefused(f"{commit.day!r} is not a day")
    for path in commit.removed:
        _check_path(path)
    for file in (*commit.added, *(commit.segments or ())):
        _check_file(file)


def _check_file(file: DataFile) -> None:
    """Reject a file or an index segment with a path that does not follow from what it claims."""
    if file.table == SEGMENT_FOLDER:
        try:
            expected = segment_path(range_of(file), file.sha256)
        except ValueError:
            raise CopyRefused(f"{file.path!r} is not the path of a lake file") from None
    elif file.table in TABLES:
        expected = path_at(file.table, _check_path(file.path), file.sha256)
    else:
        raise CopyRefused(f"this version of tonlake does not know the table {file.table!r}")
    if file.path != expected:
        raise CopyRefused(f"{file.path!r} is not the path of a lake file: that is {expected!r}")
    if file.bytes <= 0 or file.rows < 0:
        raise CopyRefused(f"{file.path!r} claims {file.bytes} bytes and {file.rows} rows")


def _check_path(path: str) -> Place:
    """Return the place of a data file; refuse a path that no file of a lake can have."""
    try:
        place = read_place(path)
    except ValueError:
        raise CopyRefused(f"{path!r} is not the path of a lake file") from None
    if not is_day(place.day):
        raise CopyRefused(f"{place.day!r} is not a day")
    return place


def select_commit(
    commit: Commit, digest: str, selection: Selection, held: tuple[Range, ...]
) -> Commit:
    """Return the part of a source's commit that a partial copy with the blocks ``held`` has.

    That is the files of its days and tables, the baseline only if it is complete, and pruned ranges
    only with their kept rows. An index segment is kept if all of its days are selected and no table
    is left out. ``digest`` is that of the source's entry; ``previous`` does not change.
    """
    has_blocks = commit.has_blocks and selection.has_day(commit.day)
    has_all = all(selection.has(file.path) for file in commit.added)
    kept = msgspec.structs.replace(commit, has_blocks=has_blocks)
    ranges = change_ranges(held, kept)
    segments = commit.segments
    if segments is not None:
        segments = tuple(each for each in segments if _is_within(each, ranges))
        segments = () if selection.lacking else segments
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


def _is_within(segment: DataFile, ranges: tuple[Range, ...]) -> bool:
    first, last = range_of(segment)
    return any(low <= first and last <= high for low, high in ranges)
