"""Actions as files of the lake: those of the complete traces that end in a range of blocks.

The files of a range follow from its file of ``traces`` and from the rows of the blocks that these
traces span. A commit classifies the traces that it completes, and adds them to what the files of
their ranges have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ingest.action.classifier import classify
from ingest.action.precedence import CLASSIFIER_VERSION
from ingest.action.stored import SOURCES, Rows, read_stored
from ingest.action.table import ActionRows
from lake.place import Derivation, NewFile, Place, read_place
from lake.rows import read_rows
from lake.schema import TABLES, TRACES
from lake.schema.action import ACTION_RANGES, ACTION_TABLES, ACTIONS, SUPERSEDED_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from lake.log import DataFile, LogState

_NAMES = frozenset(table.name for table in ACTION_TABLES)
_BATCH_TRACES = 5_000
"""Traces classified at a time: their messages are Python objects."""


class Classification(NamedTuple):
    """Rows of action tables for some traces, by name, and how many traces they are of."""

    tables: dict[str, pa.Table]
    traces: int


def classify_traces(traces: pa.Table, rows: Rows) -> Classification:
    """Classify complete traces, given as rows of ``traces``."""
    collected = ActionRows()
    count = 0
    for start in range(0, traces.num_rows, _BATCH_TRACES):
        for trace, interfaces in read_stored(traces.slice(start, _BATCH_TRACES), rows):
            collected.add(trace, classify(trace, interfaces).actions)
            count += 1
    return Classification(collected.tables(), count)


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


def add_actions(
    lake_dir: Path,
    state: LogState,
    rows: Mapping[str, pa.Table],
    place: Place,
    derived: Derivation,
) -> Derivation:
    """Return what was derived for a commit, with the action files that follow from its traces.

    Args:
        lake_dir: Folder of the lake.
        state: The lake before the commit.
        rows: Base rows of the commit.
        place: Its range.
        derived: Files of traces and of contracts of the commit.

    Raises:
        LakeCorrupt: a file that is needed is damaged.
    """
    files = list(derived.files)
    mine = _list_files(state)
    known = {**rows, **{file.table: file.rows for file in files if file.place == place}}
    added: list[NewFile] = []
    removed: set[str] = set()
    for file in files:
        if file.table != TRACES.name or file.place.is_open:
            continue
        at = file.place
        if at != place and at not in mine:
            continue  # a range that is not classified yet: `rebuild actions` does it as a whole
        before = mine.get(at, {})
        known_ids = _read_trace_ids(lake_dir, state, at)
        fresh = file.rows.filter(pc.invert(pc.is_in(file.rows["trace_id"], value_set=known_ids)))
        sources = _gather(lake_dir, state, fresh, known, place)
        added += _extend(lake_dir, at, before, classify_traces(fresh, sources))
        removed.update(old.path for old in before.values())
    return Derivation([*files, *added], derived.removed | removed)


def _extend(
    lake_dir: Path, place: Place, before: Mapping[str, DataFile], found: Classification
) -> Iterator[NewFile]:
    """Yield the files of a range: what they had, and what was found now."""
    traces = found.traces
    if ACTION_RANGES.name in before:
        traces += read_rows(lake_dir, before[ACTION_RANGES.name])["traces"][0].as_py()
    for name, fresh in found.tables.items():
        parts = [read_rows(lake_dir, before[name])] if name in before else []
        table = pa.concat_tables([*parts, fresh])
        yield NewFile(name, place, table)
        if name == ACTIONS.name:
            yield NewFile(ACTION_RANGES.name, place, make_range(place, traces, table.num_rows))
    if SUPERSEDED_ACTIONS.name in before:
        old = read_rows(lake_dir, before[SUPERSEDED_ACTIONS.name])
        yield NewFile(SUPERSEDED_ACTIONS.name, place, old)


def _list_files(state: LogState) -> dict[Place, dict[str, DataFile]]:
    """Return the action files of the lake, by range and table."""
    found: dict[Place, dict[str, DataFile]] = {}
    for file in state.files:
        if file.table in _NAMES:
            found.setdefault(read_place(file.path), {})[file.table] = file
    return found


def _read_trace_ids(lake_dir: Path, state: LogState, place: Place) -> pa.Array:
    """Return the ids of the complete traces that the lake has of a range."""
    parts = [
        read_rows(lake_dir, file, ("trace_id",))["trace_id"].combine_chunks()
        for file in state.files
        if file.table == TRACES.name and read_place(file.path) == place
    ]
    return pa.concat_arrays(parts) if parts else pa.array([], TRACES.arrow.field("trace_id").type)


def _gather(
    lake_dir: Path,
    state: LogState,
    traces: pa.Table,
    known: Mapping[str, pa.Table],
    place: Place,
) -> Rows:
    """Return the rows of all blocks that traces span: those at hand, and those in the lake."""
    if not traces.num_rows:
        return Rows({})
    first = pc.min(traces["mc_seqno_start"]).as_py()
    last = pc.max(traces["mc_seqno_end"]).as_py()
    files = [
        file
        for file in state.files
        if file.table in SOURCES and _overlaps(read_place(file.path), first, last)
    ]
    return Rows(join_sources(lake_dir, files, known if _overlaps(place, first, last) else {}))


def join_sources(
    lake_dir: Path, files: Iterable[DataFile], known: Mapping[str, pa.Table]
) -> dict[str, pa.Table]:
    """Return rows of files together with rows at hand, by table, with the columns needed."""
    parts: dict[str, list[pa.Table]] = {}
    for file in files:
        parts.setdefault(file.table, []).append(read_rows(lake_dir, file, SOURCES[file.table]))
    for name, columns in SOURCES.items():
        if name in known:
            schema = pa.schema([TABLES[name].arrow.field(column) for column in columns])
            table = known[name].select(columns)
            parts.setdefault(name, []).append(pa.table(table.columns, schema=schema))
    return {name: pa.concat_tables(tables) for name, tables in parts.items()}


def _overlaps(place: Place, first: int, last: int) -> bool:
    return not place.is_open and place.first <= last and place.last >= first
