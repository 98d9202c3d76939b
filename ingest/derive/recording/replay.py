"""Recorded traces into a lake: a partial one, which has these traces and nothing beside them.

Each commit covers the masterchain blocks of one trace, or of several that overlap, as if nothing
else were in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from tonlake.ingest.derive.action.derivation import ActionFiles
from tonlake.ingest.derive.body.derivation import derive_bodies
from tonlake.ingest.derive.recording.trace import Recorded, read_recording
from tonlake.ingest.derive.stages import derive_in_order
from tonlake.ingest.derive.trace.derivation import TraceFiles
from tonlake.ingest.errors import RecordingMalformed
from tonlake.lake.commit.commit import commit_range
from tonlake.lake.errors import LakeNotFound
from tonlake.lake.log.ranges import overlaps
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tonlake.ingest.derive.stages import Step
    from tonlake.ingest.settings import IngestSections


class ReplayReport(msgspec.Struct):
    """What one run did: commits, rows by table, and masterchain blocks that were there before."""

    commits: int = 0
    rows: dict[str, int] = {}
    skipped: list[str] = []


def replay_traces(path: Path, lake_dir: Path, settings: IngestSections) -> ReplayReport:
    """Bring recorded traces into the lake; those of blocks that it has already are skipped.

    Raises:
        RecordingMalformed: a line of the file cannot be read, or a transaction stands in two
            traces; nothing was committed.
    """
    report = ReplayReport()
    try:
        known = read_state(lake_dir).ranges
    except LakeNotFound:
        known = ()
    steps: dict[str, Step] = {"traces": TraceFiles(lake_dir), "bodies": derive_bodies}
    if settings.ingest.classify_actions:
        steps["actions"] = ActionFiles(lake_dir, settings.lake)
    for group in join_overlapping(leave_out_repeated(read_recording(path))):
        place = f"{group.first_mc_seqno}:{group.last_mc_seqno}"
        if overlaps(known, (group.first_mc_seqno, group.last_mc_seqno)):
            report.skipped.append(place)
            continue
        commit_range(
            lake_dir,
            group.tables,
            first_mc_seqno=group.first_mc_seqno,
            last_mc_seqno=group.last_mc_seqno,
            day=group.day,
            source={"kind": "traces", "file": path.name},
            settings=settings.lake,
            derive=derive_in_order(steps),
        )
        report.commits += 1
        for name, rows in group.tables.items():
            if not rows.num_rows:
                continue
            report.rows[name] = report.rows.get(name, 0) + rows.num_rows
    return report


def leave_out_repeated(traces: Iterable[Recorded]) -> list[Recorded]:
    """Return traces without those that stand in another one, in full or as far as they had grown.

    Raises:
        RecordingMalformed: two traces share transactions, and neither has all of the other.
    """
    listed = list(traces)
    hashes = [set(each.tables[TRANSACTIONS.name]["hash"].to_pylist()) for each in listed]
    kept: list[int] = []
    seen: set[bytes] = set()
    for index in sorted(range(len(listed)), key=lambda each: -len(hashes[each])):
        shared = hashes[index] & seen
        if shared == hashes[index]:
            continue
        if shared:
            raise RecordingMalformed(
                f"transaction {min(shared).hex()} stands in two traces, and neither has all of "
                f"the other"
            )
        kept.append(index)
        seen |= hashes[index]
    return [listed[index] for index in sorted(kept)]


def join_overlapping(traces: Iterable[Recorded]) -> Iterator[Recorded]:
    """Yield traces by their masterchain blocks, those that share blocks as one."""
    group: list[Recorded] = []
    for trace in sorted(traces, key=lambda each: (each.first_mc_seqno, each.last_mc_seqno)):
        if group and trace.first_mc_seqno > max(each.last_mc_seqno for each in group):
            yield _join(group)
            group = []
        group.append(trace)
    if group:
        yield _join(group)


def _join(group: list[Recorded]) -> Recorded:
    return Recorded(
        first_mc_seqno=group[0].first_mc_seqno,
        last_mc_seqno=max(each.last_mc_seqno for each in group),
        day=min(each.day for each in group),
        tables={
            name: pa.concat_tables(each.tables[name] for each in group) for name in group[0].tables
        },
    )
