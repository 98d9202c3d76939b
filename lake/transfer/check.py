"""Validates a manifest, or an entry of another lake's log, before anything is copied.

Neither is trusted: paths must match digests, ranges must fit each other, and sizes and row counts
must match the files.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tonlake.lake.commit.validation import is_day
from tonlake.lake.errors import LakeCorrupt, PieceRefused
from tonlake.lake.index.builder.place import range_of, segment_path
from tonlake.lake.log.place import path_at, read_place
from tonlake.lake.log.ranges import overlaps
from tonlake.lake.log.state import SEGMENT_FOLDER
from tonlake.lake.schema import BLOCKS, TABLES
from tonlake.lake.storage.storage import work_through

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyarrow.fs import FileInfo

    from tonlake.lake.log.network import Network
    from tonlake.lake.log.place import Place
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.selection import Selection
    from tonlake.lake.log.state import Baseline, Commit, DataFile
    from tonlake.lake.storage.storage import Storage
    from tonlake.lake.transfer.manifest import BlockRange, Manifest

SEQNO_LIMIT = (1 << 32) - 1
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHARD = re.compile(r"-?[0-9]{1,10}:[0-9a-f]{16}")


def check_manifest(manifest: Manifest) -> None:
    """Reject a manifest that no lake can have written.

    Raises:
        PieceRefused: it contradicts itself, or lists paths outside a lake, or impossible blocks.
    """
    check_network(manifest.network)
    _check_ranges(manifest.ranges)
    _check_pruned(manifest)
    check_baseline(manifest.baseline)
    if manifest.baseline is not msgspec.UNSET and not manifest.whole:
        raise PieceRefused("the export of some days claims to have a baseline")
    files = (*manifest.files, *manifest.segments)
    for path, count in Counter(file.path for file in files).items():
        if count > 1:
            raise PieceRefused(f"the export lists {path!r} {count} times")
    places = {each.place for each in manifest.ranges}
    for file in files:
        check_file(file)
    counts = Counter((file.table, _check_place(manifest, file, places)) for file in manifest.files)
    for (table, place), count in counts.items():
        if count > 1 and not place.is_baseline:
            raise PieceRefused(f"the export lists {count} files of {table} for {place}")
    for segment in manifest.segments:
        _check_segment(manifest, segment)
    _check_blocks(manifest)


def check_network(network: Network | None) -> None:
    """Reject malformed hashes of a zero state; raises as above."""
    if network is None:
        return
    hashes = (network.zero_state_root_hash, network.zero_state_file_hash)
    for digest in hashes:
        if digest is not None and _SHA256.fullmatch(digest) is None:
            raise PieceRefused(f"{digest!r} is not a hash of a zero state")


def _check_ranges(ranges: Sequence[BlockRange]) -> None:
    """Reject impossible ranges: importing them would not result in a valid lake."""
    before = 0
    for each in ranges:
        first, last = each.first_mc_seqno, each.last_mc_seqno
        if not 1 <= first <= last <= SEQNO_LIMIT:
            raise PieceRefused(f"{first}..{last} is not a range of masterchain blocks")
        if first <= before:
            raise PieceRefused(f"masterchain blocks {first}..{last} come after {before}")
        before = last
        if not is_day(each.day):
            raise PieceRefused(f"{each.day!r} is not a day")
        check_shards(each.shards)


def check_shards(shards: Mapping[str, Range]) -> None:
    """Reject impossible blocks of a shard; raises as above."""
    for shard, (low, high) in shards.items():
        if _SHARD.fullmatch(shard) is None or not 0 <= low <= high <= SEQNO_LIMIT:
            raise PieceRefused(f"{shard!r}: {low}..{high} are not blocks of a shard")


def _check_pruned(manifest: Manifest) -> None:
    """Reject pruned ranges that are impossible, or do not lie before the export's ranges."""
    if manifest.pruned is msgspec.UNSET:
        return
    before = 0
    for first, last in manifest.pruned:
        if not before < first <= last <= SEQNO_LIMIT:
            raise PieceRefused(f"{first}..{last} are not pruned masterchain blocks")
        before = last
    begin = manifest.ranges[0].first_mc_seqno if manifest.ranges else 0
    if not manifest.whole or not 0 < before < begin:
        raise PieceRefused(f"the export begins with {begin}, and was pruned up to {before}")


def check_baseline(baseline: Baseline | msgspec.UnsetType) -> None:
    """Reject a baseline of an impossible block; raises as above."""
    if baseline is msgspec.UNSET:
        return
    first, last = baseline.mc_seqno, baseline.state_mc_seqno
    if not 1 <= first <= last <= SEQNO_LIMIT or baseline.accounts not in {"all", "active"}:
        raise PieceRefused(f"{baseline.accounts!r} accounts of {first}, {last} are not a baseline")


def _is_earlier(manifest: Manifest, place: Place) -> bool:
    """Whether a place is that of the baseline, or of the kept rows of a pruned lake."""
    if place.is_baseline:
        baseline = manifest.baseline
        return baseline is not msgspec.UNSET and baseline.mc_seqno == place.first
    if manifest.pruned is msgspec.UNSET or not is_day(place.day):
        return False
    return (place.first, place.last) == (manifest.pruned[0][0], manifest.pruned[-1][1])


def check_file(file: DataFile) -> None:
    """Reject a file with a malformed digest or an impossible size; raises as above."""
    if _SHA256.fullmatch(file.sha256) is None:
        raise PieceRefused(f"{file.path!r} has no SHA-256")
    if file.bytes <= 0 or file.rows < 0:
        raise PieceRefused(f"{file.path!r} claims {file.bytes} bytes and {file.rows} rows")


def _check_place(manifest: Manifest, file: DataFile, places: set[Place]) -> Place:
    """Return the place of a data file, which must be in the export."""
    place = check_path(file)
    is_there = place in places or _is_earlier(manifest, place)
    if not (manifest.whole if place.is_open else is_there):
        raise PieceRefused(f"{file.path!r} is of blocks that the export does not have")
    return place


def check_path(file: DataFile) -> Place:
    """Return the place of a data file; its path must match its table, place and digest.

    Raises:
        PieceRefused: it does not match, or the day is malformed.
    """
    try:
        place = read_place(file.path)
    except ValueError:
        raise PieceRefused(f"{file.path!r} is not the path of a lake file") from None
    if path_at(file.table, place, file.sha256) != file.path:
        raise PieceRefused(f"{file.path!r} is not the path of a lake file: it is of another table")
    if not is_day(place.day):
        raise PieceRefused(f"{place.day!r} is not a day")
    return place


def _check_segment(manifest: Manifest, segment: DataFile) -> None:
    """Reject an index segment of blocks that the export does not have."""
    if not manifest.whole:
        raise PieceRefused(f"{segment.path!r} is not the path of a lake file")
    newest = manifest.ranges[-1].last_mc_seqno if manifest.ranges else 0
    if check_segment(segment)[1] > newest:
        raise PieceRefused(f"{segment.path!r} is an index of blocks that the export does not have")


def check_segment(segment: DataFile) -> Range:
    """Return the range of an index segment; its path must match range and digest.

    Raises:
        PieceRefused: it does not match.
    """
    try:
        first, last = range_of(segment)
    except ValueError:
        first, last = 0, 0
    if first < 1 or segment.table != SEGMENT_FOLDER:
        raise PieceRefused(f"{segment.path!r} is not the path of a lake file")
    if first > last or segment.path != segment_path((first, last), segment.sha256):
        raise PieceRefused(f"{segment.path!r} is an index of blocks that the export does not have")
    return first, last


def _check_blocks(manifest: Manifest) -> None:
    """Reject ranges with missing blocks, which would be undetectable holes."""
    rows = {read_place(one.path): one.rows for one in manifest.files if one.table == BLOCKS.name}
    for each in manifest.ranges:
        first, last = each.first_mc_seqno, each.last_mc_seqno
        found = rows.get(each.place, 0)
        if found <= last - first:
            raise PieceRefused(
                f"masterchain blocks {first}..{last} of the export have only {found} blocks"
            )


def check_files(storage: Storage, files: Sequence[DataFile]) -> None:
    """Compare files of an export with its manifest; digests are checked while copying.

    Raises:
        LakeCorrupt: a file is missing, not regular, or has another size or number of rows.
        StorageError: object storage does not answer.
    """
    standing = storage.list_files(sorted({file.table for file in files}))
    check = partial(_check_claims, storage, standing)
    for _ in work_through(check, files, storage):
        pass


def _check_claims(storage: Storage, standing: Mapping[str, FileInfo], file: DataFile) -> None:
    try:
        found = standing.get(file.path)
        if found is not None and found.is_file and found.size != file.bytes:
            raise LakeCorrupt(file.path, f"it has {found.size} bytes instead of {file.bytes}")
        with storage.open(file.path) as stream:
            if file.table == SEGMENT_FOLDER:
                return
            rows = pq.read_metadata(stream).num_rows
    except pa.ArrowException as error:
        raise LakeCorrupt(file.path, f"it is not a Parquet file ({error})") from error
    except OSError as error:
        raise LakeCorrupt.unreadable(file.path, error) from error
    if rows != file.rows:
        raise LakeCorrupt(file.path, f"it has {rows} rows instead of {file.rows}")


def check_commit(commit: Commit, held: tuple[Range, ...]) -> None:
    """Reject an entry that is impossible in a lake with the blocks ``held``.

    Raises:
        PieceRefused: it lists paths outside a lake, or impossible blocks.
    """
    first, last = commit.first_mc_seqno, commit.last_mc_seqno
    if not 1 <= first <= last <= SEQNO_LIMIT:
        raise PieceRefused(f"{first}..{last} is not a range of masterchain blocks")
    if not is_day(commit.day):
        raise PieceRefused(f"{commit.day!r} is not a day")
    if commit.has_blocks and overlaps(held, (first, last)):
        raise PieceRefused(f"the lake already has masterchain blocks {first}..{last}")
    check_network(commit.network)
    check_baseline(commit.baseline)
    check_shards(commit.shards)
    for file in commit.added:
        check_file(file)
        check_path(file)
    for path in commit.removed:
        try:
            read_place(path)
        except ValueError:
            raise PieceRefused(f"{path!r} is not the path of a lake file") from None
    for segment in commit.segments or ():
        check_file(segment)
        check_segment(segment)
    for file in commit.added:
        if file.table not in TABLES:
            raise PieceRefused(f"this version of tonlake does not know the table {file.table!r}")


def check_selection(selection: Selection) -> None:
    """Reject malformed days and unknown tables; raises as above."""
    for day in (selection.first_day, selection.last_day):
        if day is not None and not is_day(day):
            raise PieceRefused(f"{day!r} is not a day")
    for name in selection.tables or ():
        if name not in TABLES:
            raise PieceRefused(f"this version of tonlake does not know the table {name!r}")
