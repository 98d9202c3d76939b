"""Exports days of a lake to a folder that can be copied anywhere and imported there."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tonlake.lake.errors import PieceRefused
from tonlake.lake.log.own import read_definitions
from tonlake.lake.log.place import list_places, read_place
from tonlake.lake.log.ranges import Range, overlaps
from tonlake.lake.log.selection import read_selection
from tonlake.lake.log.state import LOG_FOLDER, read_commit, read_state
from tonlake.lake.schema import SCHEMA_VERSION
from tonlake.lake.storage.storage import open_storage, work_through
from tonlake.lake.transfer.manifest import (
    FORMAT,
    MANIFEST,
    BlockRange,
    Days,
    Manifest,
    copy_file,
    encode_manifest,
    read_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tonlake.lake.log.place import Place
    from tonlake.lake.log.state import Commit, LogState

_EVERY_DAY = Days()


class ExportReport(msgspec.Struct, frozen=True):
    """The content of the folder, and how much of it was copied this time."""

    snapshot: int
    ranges: tuple[Range, ...]
    whole: bool
    files: int
    bytes: int
    rows: int
    copied_files: int


def export_lake(
    lake_dir: Path,
    place: Path | str,
    days: Days = _EVERY_DAY,
    on_file: Callable[[int, int], None] = lambda _done, _all: None,
) -> ExportReport:
    """Copy the files of some days, verifying their digests, and write the manifest.

    ``place`` is a folder or ``s3://bucket/prefix``. Running the same command again resumes an
    interrupted export. Files listed only by an earlier manifest there are removed. ``days`` are UTC
    days of the masterchain blocks; ``on_file`` is called after each file with the number of files
    done and of all.

    Raises:
        LakeNotFound: the folder has no commit.
        LakeCorrupt: a file of the lake is damaged.
        LakeFull: no room.
        PieceRefused: the lake has none of the days, or is a copy without some tables; or the
            target holds a lake.
        StorageError: object storage does not answer.
    """
    if lacking := read_selection(lake_dir).lacking:
        raise PieceRefused(
            f"{lake_dir} is a copy without {len(lacking)} tables, such as {lacking[0]}: an export"
            " must have all; copy it with tonlake pull"
        )
    state = read_state(lake_dir)
    manifest = describe_piece(lake_dir, state, days)
    source, target = open_storage(lake_dir), open_storage(place)
    if target.list_files([LOG_FOLDER]):
        raise PieceRefused(f"{place} holds a lake: export to another place")
    before = read_manifest(target)
    files = (*manifest.files, *manifest.segments)
    standing = target.list_files(sorted({file.table for file in files}))
    copy = partial(copy_file, source, target, standing=standing)
    copied = 0
    for done, is_new in enumerate(work_through(copy, files, target), 1):
        copied += is_new
        on_file(done, len(files))
    data = encode_manifest(manifest)
    target.write(MANIFEST, [data], hashlib.sha256(data).hexdigest())
    if before is not None:
        kept = {file.path for file in files}
        old = [file.path for file in (*before.files, *before.segments) if file.path not in kept]
        for _ in work_through(target.remove, old, target):
            pass
    return ExportReport(
        snapshot=state.number,
        ranges=tuple((each.first_mc_seqno, each.last_mc_seqno) for each in manifest.ranges),
        whole=manifest.whole,
        files=len(files),
        bytes=sum(file.bytes for file in files),
        rows=sum(file.rows for file in manifest.files),
        copied_files=copied,
    )


def describe_piece(lake_dir: Path, state: LogState, days: Days) -> Manifest:
    """Return the manifest of some days of a lake.

    Raises:
        PieceRefused: the lake has none of the days.
    """
    every = [place for place in list_places(state) if place.first > state.last_pruned]
    places = [place for place in every if days.has(place.day)]
    if not places:
        held = f"{every[0].day} to {every[-1].day}" if every else "no day at all"
        raise PieceRefused(f"the lake has none of these days: it holds {held}")
    whole = len(places) == len(every)
    chosen = set(places)
    commits = [read_commit(lake_dir, number)[0] for number in range(1, state.number + 1)]
    return Manifest(
        format=FORMAT,
        schema_version=SCHEMA_VERSION,
        snapshot=state.number,
        whole=whole,
        network=state.network,
        ranges=tuple(_describe_range(place, commits) for place in places),
        files=tuple(
            file
            for file in state.files
            if (place := read_place(file.path)) in chosen or (whole and _is_earlier(place, state))
        ),
        segments=state.segments if whole else (),
        pruned=state.pruned if whole else msgspec.UNSET,
        tables=tuple(read_definitions(lake_dir).values()) or msgspec.UNSET,
        baseline=state.baseline if whole else msgspec.UNSET,
    )


def _is_earlier(place: Place, state: LogState) -> bool:
    """Whether a place has no range of its own, but rows that a complete lake includes."""
    return place.is_open or place.is_baseline or place.last <= state.last_pruned


def _describe_range(place: Place, commits: Iterable[Commit]) -> BlockRange:
    """Return the range of a place, which compaction may have merged from several commits."""
    shards: dict[str, Range] = {}
    zero_state = False
    for commit in commits:
        mine = (commit.first_mc_seqno, commit.last_mc_seqno)
        if not commit.has_blocks or not overlaps((mine,), (place.first, place.last)):
            continue
        zero_state = zero_state or commit.zero_state
        for name, (first, last) in commit.shards.items():
            known = shards.get(name, (first, last))
            shards[name] = (min(first, known[0]), max(last, known[1]))
    return BlockRange(place.first, place.last, place.day, shards, zero_state)
