"""Imports an export into a lake: every file is verified, every range is a separate commit."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tonlake.lake.commit.commit import append_commit, check_not_pruned
from tonlake.lake.errors import PieceRefused, RangeOverlap
from tonlake.lake.log.disk import LOCK_FILE, hold_lock, make_folder
from tonlake.lake.log.network import join_networks
from tonlake.lake.log.own import adopt_definitions
from tonlake.lake.log.place import list_files, read_place
from tonlake.lake.log.ranges import Range, overlaps
from tonlake.lake.log.reader import LogReader
from tonlake.lake.log.state import LOG_FOLDER, Commit
from tonlake.lake.schema import (
    OPEN_EDGES,
    TRACES,
    TRANSACTION_TRACES,
    TRANSACTIONS,
)
from tonlake.lake.schema.action import ACTION_TABLES
from tonlake.lake.storage.storage import open_storage, work_through
from tonlake.lake.transfer.check import check_files
from tonlake.lake.transfer.manifest import (
    MANIFEST,
    check_version,
    copy_file,
    encode_manifest,
    read_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tonlake.lake.log.state import Baseline, DataFile, LogState
    from tonlake.lake.storage.storage import Storage
    from tonlake.lake.transfer.manifest import BlockRange, Manifest

SPANNING = frozenset(
    table.name for table in (TRANSACTION_TRACES, TRACES, OPEN_EDGES, *ACTION_TABLES)
)
"""Tables whose rows also depend on earlier and later blocks: those of a part of a lake are wrong in
another lake, so they are derived again after the import."""


class ImportReport(msgspec.Struct, frozen=True):
    """What was imported; ``derive``: whether traces and actions must be derived again."""

    commits: int
    files: int
    bytes: int
    rows: int
    ranges: tuple[Range, ...]
    derive: bool


def import_piece(
    place: Path | str,
    lake_dir: Path,
    on_file: Callable[[int, int], None] = lambda _done, _all: None,
) -> ImportReport:
    """Add an export, written by ``export_lake``, to a lake, which is created if necessary.

    An export of all days, imported into an empty folder, results in the same lake, including
    traces, actions and index. Ranges that the lake already has are skipped, so running the same
    command again resumes an interrupted import. ``on_file`` is called after each file with the
    number of files done and of all.

    Raises:
        PieceRefused: there is no manifest, or it is damaged, too new or contradicts itself.
        LakeCorrupt: a file of the folder is missing or damaged; missing files, and wrong sizes
            or row counts, are found before anything is copied.
        RangeOverlap: the lake has only some blocks of a range.
        NetworkMismatch: the lake belongs to another network.
        LakeFull, CommitConflict: as ``commit_range``.
        StorageError: object storage does not answer.
    """
    source = open_storage(place)
    manifest = read_manifest(source)
    if manifest is None:
        raise PieceRefused(
            f"{source.name} holds no export: no {MANIFEST} in it (tonlake pull copies a lake)"
        )
    check_version(manifest)
    make_folder(lake_dir / LOG_FOLDER)
    with hold_lock(lake_dir / LOCK_FILE):
        log = LogReader(lake_dir)
        join_networks(log.read().network, manifest.network)
        report = _import_missing(source, log, manifest, on_file)
    if manifest.tables is not msgspec.UNSET:
        adopt_definitions(lake_dir, manifest.tables)
    return report


class _Step(NamedTuple):
    """One commit of an import: its blocks and files; the last one adds the index segments.

    The first one adds the baseline, or the kept rows of a pruned lake.
    """

    blocks: BlockRange
    files: list[DataFile]
    segments: tuple[DataFile, ...] | None
    pruned: tuple[Range, ...] | msgspec.UnsetType = msgspec.UNSET
    baseline: Baseline | msgspec.UnsetType = msgspec.UNSET


def _import_missing(
    source: Storage, log: LogReader, manifest: Manifest, on_file: Callable[[int, int], None]
) -> ImportReport:
    """Commit the missing ranges one by one; the caller holds the lock."""
    state = log.read()
    names = {file.path for file in manifest.files}
    is_same = manifest.whole and all(file.path in names for file in state.files)
    missing = _list_missing(state, manifest)
    steps = _plan_steps(manifest, missing, is_same=is_same)
    if steps and not state.number:
        first = steps[0]
        files = [*manifest.earlier_files, *first.files]
        steps[0] = first._replace(files=files, pruned=manifest.pruned, baseline=manifest.baseline)
    copied = [file for step in steps for file in (*step.files, *(step.segments or ()))]
    check_files(source, copied)
    target = open_storage(log.lake_dir)
    standing = target.list_files(sorted({file.table for file in copied}))
    copy = partial(copy_file, source, target, standing=standing)
    digest = hashlib.sha256(encode_manifest(manifest)).hexdigest()
    done = 0
    for step in steps:
        for _ in work_through(copy, (*step.files, *(step.segments or ())), source):
            done += 1
            on_file(done, len(copied))
        append_commit(log.lake_dir, state, _describe(state, step, manifest, digest))
        state = log.read()
    return ImportReport(
        commits=len(steps),
        files=len(copied),
        bytes=sum(file.bytes for file in copied),
        rows=sum(file.rows for step in steps for file in step.files),
        ranges=tuple((each.first_mc_seqno, each.last_mc_seqno) for each in missing),
        derive=not is_same and (bool(missing) or _lacks_traces(state)),
    )


def _list_missing(state: LogState, manifest: Manifest) -> list[BlockRange]:
    """Return the ranges of which the lake has no block.

    Raises:
        RangeOverlap: it has a part of one, or is pruned beyond it.
    """
    missing = []
    for each in manifest.ranges:
        mine = (each.first_mc_seqno, each.last_mc_seqno)
        check_not_pruned(state, mine)
        found = overlaps(state.ranges, mine)
        if not found:
            missing.append(each)
        elif not any(first <= mine[0] and mine[1] <= last for first, last in found):
            raise RangeOverlap(
                f"masterchain blocks {mine[0]}..{mine[1]} cannot be imported: the lake has "
                f"{found[0][0]}..{found[0][1]} already"
            )
    return missing


def _plan_steps(manifest: Manifest, missing: Sequence[BlockRange], *, is_same: bool) -> list[_Step]:
    by_place = manifest.files_by_place()
    steps = []
    for each in missing:
        files, segments = by_place.get(each.place, []), None
        if not is_same:
            files = [file for file in files if file.table not in SPANNING]
        elif each is missing[-1]:
            files, segments = [*files, *manifest.open_files], manifest.segments
        steps.append(_Step(each, files, segments))
    return steps


def _describe(state: LogState, step: _Step, manifest: Manifest, digest: str) -> Commit:
    return Commit(
        number=state.number + 1,
        first_mc_seqno=step.blocks.first_mc_seqno,
        last_mc_seqno=step.blocks.last_mc_seqno,
        day=step.blocks.day,
        added=tuple(step.files),
        source={"import": digest},
        shards=step.blocks.shards,
        zero_state=step.blocks.zero_state,
        network=manifest.network,
        previous=state.digest,
        segments=step.segments,
        pruned=step.pruned,
        baseline=step.baseline,
    )


def _lacks_traces(state: LogState) -> bool:
    """Whether an interrupted import has left transactions without traces."""
    transactions, traces = (
        {read_place(file.path) for file in list_files(state, table.name)}
        for table in (TRANSACTIONS, TRANSACTION_TRACES)
    )
    return not transactions <= traces
