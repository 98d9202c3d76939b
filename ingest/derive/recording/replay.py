"""Writes recorded traces to a partial lake, which has only these traces.

Each commit covers the masterchain blocks of one trace, or of several that overlap, as if they
contained nothing else.
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
    """The result of a run: commits, rows by table, and ranges of blocks that already existed."""

    commits: int = 0
    rows: dict[str, int] = {}
    skipped: list[str] = []


def replay_traces(path: Path, lake_dir: Path, settings: IngestSections) -> ReplayReport:
    """Write recorded traces to the lake; skip those whose blocks it already has.

    Raises:
        RecordingMalformed: a line of the file is malformed, or a transaction is in two traces;
            nothing was committed.
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
    """Return traces without those contained in another one, in full or up to an earlier state.

    Raises:
        RecordingMalformed: two traces share transactions, and neither contains the other.
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
                f"transaction {min(shared).hex()} is in two traces, and neither contains the other"
            )
        kept.append(index)
        seen |= hashes[index]
    return [listed[index] for index in sorted(kept)]


def join_overlapping(traces: Iterable[Recorded]) -> Iterator[Recorded]:
    """Yield traces by masterchain block, merging those that share blocks."""
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
