"""Actions as files of the lake: those of the complete traces that end in a range of blocks.

The files of a range follow from its file of ``traces`` and from the rows of the blocks that these
traces span. A commit classifies the traces that it completes, and adds them to what the files of
their ranges have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.action.account.known import KnownContracts, find_nothing
from tonlake.ingest.derive.action.classifier import classify
from tonlake.ingest.derive.action.gathering import gather_sources
from tonlake.ingest.derive.action.precedence import CLASSIFIER_VERSION
from tonlake.ingest.derive.action.stored import Rows, read_stored
from tonlake.ingest.derive.action.table import ActionRows
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Derivation, NewFile, Place, list_files, read_place
from tonlake.lake.schema import TRACES, TRANSACTION_TRACES
from tonlake.lake.schema.action import ACTION_RANGES, ACTION_TABLES, ACTIONS, SUPERSEDED_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tonlake.ingest.derive.action.account.known import FindKnown
    from tonlake.ingest.derive.action.classifier import Classified
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.model import Trace
    from tonlake.lake.log.state import DataFile, LogState
    from tonlake.lake.settings import LakeSettings

Row = dict[str, Any]

_NAMES = tuple(table.name for table in ACTION_TABLES)
_BATCH_TRACES = 5_000
"""Traces classified at a time: their messages are Python objects."""


class Classification(NamedTuple):
    """Rows of action tables for some traces, by name, and how many traces they are of."""

    tables: dict[str, pa.Table]
    traces: int


def classify_traces(
    traces: pa.Table, rows: Rows, find_known: FindKnown = find_nothing
) -> Classification:
    """Classify complete traces, given as rows of ``traces``.

    ``find_known`` returns what other accounts were at the end of a trace.
    """
    collected = ActionRows()
    count = 0
    for start in range(0, traces.num_rows, _BATCH_TRACES):
        found = classify_stored(traces.slice(start, _BATCH_TRACES), rows, find_known)
        for trace, _interfaces, classified in found:
            collected.add(trace, classified.actions)
            count += 1
    return Classification(collected.tables(), count)


def classify_stored(
    traces: pa.Table, rows: Rows, find_known: FindKnown
) -> list[tuple[Trace, Interfaces, Classified]]:
    """Return traces with the interfaces that their rules asked for, and what they did.

    A trace is classified again with the interfaces that it missed, until it misses none.
    """
    found = [
        (trace, interfaces, classify(trace, interfaces))
        for trace, interfaces in read_stored(traces, rows)
    ]
    while asked := {
        (account, trace.mc_seqno_end)
        for trace, interfaces, _ in found
        for account in interfaces.missed
    }:
        known = find_known(asked)
        for at, (trace, before, classified) in enumerate(found):
            if before.missed:
                facts = {one: known.get((one, trace.mc_seqno_end), {}) for one in before.missed}
                interfaces = before.join(facts)
                if any(facts.values()):
                    classified = classify(trace, interfaces)  # noqa: PLW2901 - what is kept
                found[at] = trace, interfaces, classified
    return found


def make_range(place: Place, traces: int, actions: int) -> pa.Table:
    """Return the row of ``action_ranges`` for one range."""
    row = {
        "first_mc_seqno": place.first,
        "last_mc_seqno": place.last,
        "classifier_version": CLASSIFIER_VERSION,
        "traces": traces,
        "actions": actions,
    }
    return pa.Table.from_pylist([row], schema=ACTION_RANGES.arrow)


class ActionFiles:
    """Derives the action files of a commit from its traces and contracts: the stage ``actions``."""

    def __init__(self, lake_dir: Path, settings: LakeSettings) -> None:
        """Take the lake's folder, and the settings it is opened with."""
        self._lake_dir, self._settings = lake_dir, settings

    def __call__(
        self,
        state: LogState,
        rows: Mapping[str, pa.Table],
        place: Place,
        earlier: Sequence[NewFile] = (),
    ) -> Derivation:
        """Return the action files that follow from the files of earlier stages.

        A range that is not classified yet is left to ``tonlake rebuild actions``.

        Raises:
            LakeCorrupt: a file that is needed is damaged.
        """
        at_hand = {**rows, **{file.table: file.rows for file in earlier if file.place == place}}
        moved = {file.place: file.rows for file in earlier if file.table == TRANSACTION_TRACES.name}
        mine = list_action_files(state)
        added: list[NewFile] = []
        removed: set[str] = set()
        for file in earlier:
            at = file.place
            if file.table != TRACES.name or at.is_open or (at != place and at not in mine):
                continue
            before = mine.get(at, {})
            ranges = _read_ranges(self._lake_dir, before) or make_range(at, 0, 0).to_pylist()
            fresh = _keep_within(self._leave_out_known(state, file), ranges)
            sources = gather_sources(self._lake_dir, state, fresh, at_hand, place, moved)
            known = KnownContracts(self._lake_dir, self._settings, state, at_hand)
            found = classify_traces(fresh, sources, known.find)
            added += _extend(self._lake_dir, at, before, found.tables)
            added.append(NewFile(ACTION_RANGES.name, at, _count(ranges, fresh, found)))
            removed.update(old.path for old in before.values())
        return Derivation(added, frozenset(removed))

    def _leave_out_known(self, state: LogState, file: NewFile) -> pa.Table:
        """Return the traces of a new file that no file before it had."""
        known = [
            read_rows(self._lake_dir, each, ("trace_id",))["trace_id"].combine_chunks()
            for each in list_files(state, TRACES.name)
            if read_place(each.path) == file.place
        ]
        if not known:
            return file.rows
        is_known = pc.is_in(file.rows["trace_id"], value_set=pa.concat_arrays(known))
        return file.rows.filter(pc.invert(is_known))


def _read_ranges(lake_dir: Path, before: Mapping[str, DataFile]) -> list[Row]:
    """Return the ranges that a file of them names: one, or those of merged commits."""
    if ACTION_RANGES.name not in before:
        return []
    rows: list[Row] = read_rows(lake_dir, before[ACTION_RANGES.name]).to_pylist()
    return rows


def _keep_within(traces: pa.Table, ranges: Sequence[Row]) -> pa.Table:
    """Return the traces that end in one of the ranges; others are not classified yet."""
    ends = traces["mc_seqno_end"].to_pylist()
    kept = [
        any(row["first_mc_seqno"] <= end <= row["last_mc_seqno"] for row in ranges) for end in ends
    ]
    return traces.filter(pa.array(kept, pa.bool_()))


def _count(ranges: Sequence[Row], fresh: pa.Table, found: Classification) -> pa.Table:
    """Return rows of ``action_ranges`` that also count what was found now."""
    counted = [
        (fresh["mc_seqno_end"].to_pylist(), "traces"),
        (found.tables[ACTIONS.name]["mc_seqno"].to_pylist(), "actions"),
    ]
    rows = []
    for row in ranges:
        first, last = row["first_mc_seqno"], row["last_mc_seqno"]
        more = {
            name: row[name] + sum(first <= end <= last for end in ends) for ends, name in counted
        }
        rows.append(row | more)
    return pa.Table.from_pylist(rows, schema=ACTION_RANGES.arrow)


def _extend(
    lake_dir: Path, place: Place, before: Mapping[str, DataFile], found: Mapping[str, pa.Table]
) -> Iterator[NewFile]:
    """Yield the files of a range: what they had, and what was found now."""
    for name, fresh in found.items():
        parts = [read_rows(lake_dir, before[name])] if name in before else []
        yield NewFile(name, place, pa.concat_tables([*parts, fresh]))
    if SUPERSEDED_ACTIONS.name in before:
        old = read_rows(lake_dir, before[SUPERSEDED_ACTIONS.name])
        yield NewFile(SUPERSEDED_ACTIONS.name, place, old)


def list_action_files(state: LogState) -> dict[Place, dict[str, DataFile]]:
    """Return the action files of the lake, by range and table."""
    found: dict[Place, dict[str, DataFile]] = {}
    for file in list_files(state, *_NAMES):
        found.setdefault(read_place(file.path), {})[file.table] = file
    return found
