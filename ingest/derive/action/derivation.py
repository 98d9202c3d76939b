"""Derives the action files of complete traces that end in a range of blocks.

The files of a range depend on its file of ``traces`` and on the rows of the blocks that these
traces span. A commit classifies the traces that it completes, and adds their actions to the files
of the ranges in which they end.

Traces are classified in slices, in this process or in several. A slice is sent with its own rows
and returned as rows of actions, so any process can classify it. Facts about its accounts that are
not in these rows are looked up in the lake between rounds.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.action.classifier import classify
from tonlake.ingest.derive.action.interface import Facts, Interfaces
from tonlake.ingest.derive.action.model import Trace
from tonlake.ingest.derive.action.precedence import CLASSIFIER_VERSION
from tonlake.ingest.derive.action.row import Values, list_rows, make_tables
from tonlake.ingest.derive.action.stored import (
    Asked,
    FindKnown,
    KnownContracts,
    Rows,
    gather_sources,
    read_stored,
)
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.span import Scope
from tonlake.ingest.spread import HERE, Shared, Spread
from tonlake.lake.file.rows import Row, keep_rows, make_rows, read_rows, without_collector
from tonlake.lake.log.place import (
    Derivation,
    NewFile,
    Place,
    list_files,
    list_files_at,
    list_places,
    read_place,
)
from tonlake.lake.log.state import DataFile, LogState
from tonlake.lake.schema import (
    ACTION_RANGES,
    ACTION_TABLES,
    ACTIONS,
    SUPERSEDED_ACTIONS,
    TRACES,
    TRANSACTION_TRACES,
    TRANSACTIONS,
)
from tonlake.lake.settings import LakeSettings

FactsByTrace = Mapping[bytes, Mapping[str, Facts]]


_MAX_TRANSACTIONS, _MIN_TRANSACTIONS, _SLICES = 4_000, 1_000, 16
"""Maximum and minimum of transactions in a slice, whose messages are Python objects, and the number
of slices between these bounds."""


class _Order(NamedTuple):
    """Complete traces (rows of ``traces``), all rows, among them theirs, and facts by trace."""

    traces: pa.Table
    rows: Shared[Rows]
    facts: FactsByTrace


class Classification(NamedTuple):
    """Rows of action tables for some traces, and the facts looked up."""

    tables: dict[str, pa.Table]
    facts: dict[bytes, dict[str, Facts]]


def classify_traces(
    traces: pa.Table, rows: Rows, find_known: FindKnown = lambda _asked: {}, spread: Spread = HERE
) -> Classification:
    """Classify complete traces, again with the accounts that one missed, until it misses none.

    ``rows`` are those of all their transactions; ``find_known`` returns the facts of other accounts
    as of the end of a trace.
    """
    facts: dict[bytes, dict[str, Facts]] = {}
    shared, due = spread.share(rows), _leave_out_ticks(traces, rows)
    size = _choose_size(due, spread.count)
    parts: list[dict[str, pa.Table]] = []
    while True:
        missed: dict[bytes, set[Asked]] = {}
        slices = _cut_slices(due, shared, facts, size)
        for tables, unknown in spread.map(_classify_slice, slices):
            parts.append(tables)
            missed |= unknown
        if not missed or not (again := _look_up(missed, facts, find_known)):
            break
        ids = pa.array(again, traces["trace_id"].type)
        parts = [_filter_tables(tables, ids) for tables in parts]
        due = traces.filter(pc.is_in(traces["trace_id"], value_set=ids))
    joined = {name: pa.concat_tables([part[name] for part in parts]) for name in parts[0]}
    return Classification(joined, facts)


def _leave_out_ticks(traces: pa.Table, rows: Rows) -> pa.Table:
    """Return the traces other than single tick-tock transactions, which are no actions."""
    transactions = rows.take(TRANSACTIONS.name)
    ticks = transactions["hash"].filter(pc.equal(transactions["descr"], "tick_tock"))
    is_tick = pc.is_in(traces["trace_id"], value_set=ticks.combine_chunks())
    return keep_rows(traces, pc.invert(pc.and_(is_tick, pc.equal(traces["transactions"], 1))))


def _look_up(
    missed: Mapping[bytes, set[Asked]], facts: dict[bytes, dict[str, Facts]], find_known: FindKnown
) -> list[bytes]:
    """Add the facts of missed accounts; return the traces for which any were found."""
    known = find_known({key for asked in missed.values() for key in asked})
    again = []
    for trace_id, asked in missed.items():
        found = {account: known.get((account, end), {}) for account, end in asked}
        facts.setdefault(trace_id, {}).update(found)
        if any(found.values()):
            again.append(trace_id)
    return again


def _choose_size(traces: pa.Table, processes: int) -> int:
    """Return how many transactions a slice has: each costs a look at all rows."""
    if processes == 1:
        return _MAX_TRANSACTIONS
    share = pc.sum(traces["transactions"]).as_py() or 0
    return min(_MAX_TRANSACTIONS, max(_MIN_TRANSACTIONS, share // _SLICES))


def _cut_slices(
    traces: pa.Table, rows: Shared[Rows], facts: FactsByTrace, size: int
) -> Iterator[_Order]:
    """Yield traces in slices, each with its facts; a single empty slice if there are no traces."""
    for start, end in pairwise(_find_cuts(traces, size)):
        # A slice would be sent with the whole table.
        is_whole = end - start == traces.num_rows
        part = traces if is_whole else traces.take(pa.arange(start, end))
        ids = part["trace_id"].to_pylist() if facts else ()
        yield _Order(part, rows, {key: facts[key] for key in ids if key in facts})


def _find_cuts(traces: pa.Table, size: int) -> list[int]:
    """Return the index of the first trace of each slice, and the end of the last one."""
    counts = traces["transactions"].to_pylist()
    cuts, taken = [0], 0
    for place, count in enumerate(counts):
        if taken and taken + count > size:
            cuts.append(place)
            taken = 0
        taken += count
    return [*cuts, len(counts)]


def read_known(
    traces: pa.Table, rows: Rows, facts: FactsByTrace
) -> Iterator[tuple[Trace, Interfaces]]:
    """Yield complete traces with the facts of their accounts, and those that were looked up."""
    for trace, own in read_stored(traces, rows):
        known = facts.get(trace.trace_id)
        yield trace, own if known is None else own.join(known)


def _classify_slice(order: _Order) -> tuple[dict[str, pa.Table], dict[bytes, set[Asked]]]:
    """Return rows of action tables by name, and by trace the accounts without facts."""
    rows: list[Values] = []
    missed: dict[bytes, set[Asked]] = {}
    with without_collector():
        for trace, interfaces in read_known(order.traces, order.rows.open(), order.facts):
            rows += list_rows(trace, classify(trace, interfaces).actions)
            if interfaces.missed:
                missed[trace.trace_id] = {(each, trace.mc_seqno_end) for each in interfaces.missed}
    return make_tables(rows), missed


def _filter_tables(tables: Mapping[str, pa.Table], trace_ids: pa.Array) -> dict[str, pa.Table]:
    """Remove the rows of some traces."""
    return {
        name: rows.filter(pc.invert(pc.is_in(rows["trace_id"], value_set=trace_ids)))
        for name, rows in tables.items()
    }


_NAMES = tuple(table.name for table in ACTION_TABLES)


def describe_range(place: Place, traces: pa.Table, actions: pa.Table) -> Row:
    """Return the row of ``action_ranges`` for one range."""
    return {
        "first_mc_seqno": place.first,
        "last_mc_seqno": place.last,
        "classifier_version": CLASSIFIER_VERSION,
        "traces": traces.num_rows,
        "actions": actions.num_rows,
    }


class ActionFiles:
    """Derives the action files of a commit from its traces and contracts: the stage ``actions``."""

    def __init__(self, lake_dir: Path, settings: LakeSettings, spread: Spread = HERE) -> None:
        """Create the stage for a lake; ``spread`` classifies slices of traces."""
        self._lake_dir, self._settings, self._spread = lake_dir, settings, spread

    def __call__(
        self,
        state: LogState,
        rows: Mapping[str, pa.Table],
        place: Place,
        earlier: Sequence[NewFile] = (),
    ) -> Derivation:
        """Return the action files that follow; ranges not yet classified are left to a rebuild."""
        at_hand = {**rows, **{file.table: file.rows for file in earlier if file.place == place}}
        moved = {file.place: file.rows for file in earlier if file.table == TRANSACTION_TRACES.name}
        added: list[NewFile] = []
        removed: set[str] = set()
        for file in earlier:
            at = file.place
            if file.table != TRACES.name or at.is_open:
                continue
            before = {old.table: old for old in list_files_at(state, at, *_NAMES)}
            if at != place and not before:
                continue
            fresh, ranges = self._leave_out_known(state, file), []
            if ACTION_RANGES.name in before:
                ranges = read_rows(self._lake_dir, before[ACTION_RANGES.name]).to_pylist()
                ends = fresh["mc_seqno_end"].to_numpy()
                is_within = np.any([_lies_within(ends, row) for row in ranges], axis=0)
                fresh = keep_rows(fresh, pa.array(is_within))  # others are not classified yet
            sources = gather_sources(self._lake_dir, state, fresh, at_hand, place, moved)
            known = KnownContracts(self._lake_dir, self._settings, state, at_hand)
            found = classify_traces(fresh, sources, known.find, self._spread)
            added += _extend(self._lake_dir, at, before, found.tables)
            actions = found.tables[ACTIONS.name]
            whole = describe_range(at, fresh, actions)
            counts = _count(ranges, fresh, actions) or [whole]
            added.append(NewFile(ACTION_RANGES.name, at, make_rows(ACTION_RANGES, counts)))
            removed.update(old.path for old in before.values())
        return Derivation(added, frozenset(removed))

    def _leave_out_known(self, state: LogState, file: NewFile) -> pa.Table:
        """Return the traces of a new file that no earlier file has."""
        known = [
            read_rows(self._lake_dir, each, ("trace_id",))["trace_id"].combine_chunks()
            for each in list_files_at(state, file.place, TRACES.name)
        ]
        if not known:
            return file.rows
        is_known = pc.is_in(file.rows["trace_id"], value_set=pa.concat_arrays(known))
        return file.rows.filter(pc.invert(is_known))


def _lies_within(seqnos: np.ndarray, row: Row) -> np.ndarray:
    first, last = int(row["first_mc_seqno"]), int(row["last_mc_seqno"])
    return (seqnos >= first) & (seqnos <= last)


def _count(ranges: Sequence[Row], fresh: pa.Table, actions: pa.Table) -> list[Row]:
    """Return the rows of ``action_ranges`` with new traces and actions added to their counts."""
    ends, own_ends = fresh["mc_seqno_end"].to_numpy(), actions["mc_seqno"].to_numpy()
    return [
        row
        | {
            "traces": row["traces"] + int(_lies_within(ends, row).sum()),
            "actions": row["actions"] + int(_lies_within(own_ends, row).sum()),
        }
        for row in ranges
    ]


def _extend(
    lake_dir: Path, place: Place, before: Mapping[str, DataFile], found: Mapping[str, pa.Table]
) -> Iterator[NewFile]:
    """Yield the files of a range with their old and new rows."""
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


_COMPARED = ("trace_id", "action_id", "type", "success", "accounts", "details", "amount", "value")
"""Columns by which actions of two versions are compared."""


def rederive_actions(
    lake_dir: Path, state: LogState, settings: IngestSections, scope: Scope
) -> Derivation | None:
    """Return the action files of ranges that this version has not classified.

    With ``scope.within`` those of the ranges there, whose rows then supersede none.
    """
    mine = list_action_files(state)
    places = [
        each for each in list_places(state) if scope.covers(each) and each.first > state.last_pruned
    ]
    if scope.within is not None:
        places = [each for each in places if each in mine]
    elif not scope.everything:
        places = [each for each in places if not _is_current(lake_dir, each, mine.get(each, {}))]
    if not places:
        return None
    before = {place: mine.get(place, {}) for place in places}
    known = KnownContracts(lake_dir, settings.lake, state)
    return Derivation(
        files=_derive_all(known, lake_dir, state, before, scope),
        removed=frozenset(file.path for files in before.values() for file in files.values()),
    )


def _is_current(lake_dir: Path, place: Place, files: Mapping[str, DataFile]) -> bool:
    """Return whether this version classified every block of a place."""
    if ACTION_RANGES.name not in files:
        return False
    rows = read_rows(lake_dir, files[ACTION_RANGES.name]).to_pylist()
    done = sum(row["last_mc_seqno"] - row["first_mc_seqno"] + 1 for row in rows)
    versions = {row["classifier_version"] for row in rows}
    return versions == {CLASSIFIER_VERSION} and done == place.last - place.first + 1


def _derive_all(
    known: KnownContracts,
    lake_dir: Path,
    state: LogState,
    files: Mapping[Place, Mapping[str, DataFile]],
    scope: Scope,
) -> Iterator[NewFile]:
    """Yield the files of the places of ``files``, which has those that they replace."""
    keeps_old = scope.within is None
    for done, (place, before) in enumerate(files.items(), 1):
        parts = [read_rows(lake_dir, file) for file in list_files_at(state, place, TRACES.name)]
        traces = pa.concat_tables(parts) if parts else TRACES.empty
        sources = gather_sources(lake_dir, state, traces, {}, place)
        tables = classify_traces(traces, sources, known.find).tables
        for name, rows in tables.items():
            yield NewFile(name, place, rows)
        actions = tables[ACTIONS.name]
        ranges = make_rows(ACTION_RANGES, [describe_range(place, traces, actions)])
        yield NewFile(ACTION_RANGES.name, place, ranges)
        kept = ACTIONS.name if keeps_old else SUPERSEDED_ACTIONS.name
        if kept in before:
            old = read_rows(lake_dir, before[kept])
            old = find_superseded(old, actions) if keeps_old else old
            yield NewFile(SUPERSEDED_ACTIONS.name, place, old)
        scope.on_range(done, len(files))


def find_superseded(old: pa.Table, new: pa.Table) -> pa.Table:
    """Return the old rows of traces whose rows differ in ``new``."""
    before, after = _sum_up(old), _sum_up(new)
    changed = [trace_id for trace_id, rows in before.items() if after.get(trace_id) != rows]
    trace_ids = pa.array(changed, ACTIONS.arrow.field("trace_id").type)
    return old.filter(pc.is_in(old["trace_id"], value_set=trace_ids))


def _sum_up(actions: pa.Table) -> dict[bytes, list[str]]:
    """Return the compared columns of each trace's actions, independent of row order."""
    by_trace: dict[bytes, list[str]] = {}
    for row in actions.select(_COMPARED).to_pylist():
        by_trace.setdefault(row["trace_id"], []).append(repr(row))
    return {trace_id: sorted(rows) for trace_id, rows in by_trace.items()}
