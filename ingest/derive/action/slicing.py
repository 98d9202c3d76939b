"""Classifies traces in slices, in this process or in several.

A slice is sent with its own rows and returned as rows of actions, so any process can classify it.
Facts about its accounts that are not in these rows are looked up in the lake between rounds.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.decode.heap import without_collector
from tonlake.ingest.derive.action.account.known import find_nothing
from tonlake.ingest.derive.action.classifier import classify
from tonlake.ingest.derive.action.stored import Rows, read_stored
from tonlake.ingest.derive.action.table import ActionRows
from tonlake.ingest.spread import HERE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tonlake.ingest.derive.action.account.known import Asked, FindKnown
    from tonlake.ingest.derive.action.classifier import Classified
    from tonlake.ingest.derive.action.interface import Facts, Interfaces
    from tonlake.ingest.derive.action.model import Trace
    from tonlake.ingest.spread import Shared, Spread

    FactsByTrace = Mapping[bytes, Mapping[str, Facts]]

_MAX_TRANSACTIONS, _MIN_TRANSACTIONS, _SLICES = 8_000, 1_000, 16
"""Maximum and minimum of transactions in a slice, whose messages are Python objects, and the number
of slices between these bounds."""


class Slice(NamedTuple):
    """Complete traces (rows of ``traces``), the rows that contain theirs, and facts by trace."""

    traces: pa.Table
    rows: Rows
    facts: FactsByTrace


class _Order(NamedTuple):
    """A slice to be classified by any process, which selects its rows from all."""

    traces: pa.Table
    rows: Shared[Rows]
    facts: FactsByTrace


class _Outcome(NamedTuple):
    """Rows of action tables by name, the number of their traces, and accounts without facts."""

    tables: dict[str, pa.Table]
    traces: int
    missed: dict[bytes, set[Asked]]


class Classification(NamedTuple):
    """Rows of action tables for some traces, the number of traces, and the facts looked up."""

    tables: dict[str, pa.Table]
    traces: int
    facts: dict[bytes, dict[str, Facts]]


def classify_traces(
    traces: pa.Table,
    rows: Rows,
    find_known: FindKnown = find_nothing,
    spread: Spread = HERE,
) -> Classification:
    """Classify complete traces.

    A trace is classified again with the accounts that it missed, until it misses none.

    Args:
        traces: Rows of ``traces``.
        rows: Rows of all their transactions.
        find_known: Returns the facts of other accounts as of the end of a trace.
        spread: The processes that classify slices; the result does not depend on it.
    """
    facts: dict[bytes, dict[str, Facts]] = {}
    shared = spread.share(rows)
    outcomes = list(spread.map(_classify_slice, _cut_slices(traces, shared)))
    parts, count = [outcome.tables for outcome in outcomes], sum(each.traces for each in outcomes)
    while missed := {key: asked for each in outcomes for key, asked in each.missed.items()}:
        again = _look_up(missed, facts, find_known)
        if not again:
            break
        ids = pa.array(again, traces["trace_id"].type)
        parts = [_filter_tables(tables, ids) for tables in parts]
        some = traces.filter(pc.is_in(traces["trace_id"], value_set=ids))
        outcomes = list(spread.map(_classify_slice, _cut_slices(some, shared, facts)))
        parts += [outcome.tables for outcome in outcomes]
    joined = {name: pa.concat_tables([part[name] for part in parts]) for name in parts[0]}
    return Classification(joined, count, facts)


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


def _cut_slices(
    traces: pa.Table, rows: Shared[Rows], facts: FactsByTrace | None = None
) -> Iterator[_Order]:
    """Yield traces in slices, each with its facts; a single empty slice if there are no traces."""
    for start, end in pairwise(_find_cuts(traces)):
        part = traces.take(pa.arange(start, end))  # a slice would be sent with the whole table
        own = (
            {key: facts[key] for key in part["trace_id"].to_pylist() if key in facts}
            if facts
            else {}
        )
        yield _Order(part, rows, own)


def _find_cuts(traces: pa.Table) -> list[int]:
    """Return the index of the first trace of each slice, and the end of the last one."""
    counts = traces["transactions"].to_pylist()
    size = min(_MAX_TRANSACTIONS, max(_MIN_TRANSACTIONS, sum(counts) // _SLICES))
    cuts, taken = [0], 0
    for place, count in enumerate(counts):
        if taken and taken + count > size:
            cuts.append(place)
            taken = 0
        taken += count
    return [*cuts, len(counts)]


def classify_known(
    part: Slice,
) -> Iterator[tuple[Trace, Interfaces, Classified]]:
    """Yield the traces of a slice with the facts of their accounts, and their classification."""
    for trace, own in read_stored(part.traces, part.rows):
        facts = part.facts.get(trace.trace_id)
        interfaces = own if facts is None else own.join(facts)
        yield trace, interfaces, classify(trace, interfaces)


def _classify_slice(order: _Order) -> _Outcome:
    part = Slice(order.traces, order.rows.open(), order.facts)
    collected = ActionRows()
    missed: dict[bytes, set[Asked]] = {}
    count = 0
    with without_collector():
        for trace, interfaces, classified in classify_known(part):
            collected.add(trace, classified.actions)
            count += 1
            if interfaces.missed:
                missed[trace.trace_id] = {(each, trace.mc_seqno_end) for each in interfaces.missed}
    return _Outcome(collected.tables(), count, missed)


def _filter_tables(tables: Mapping[str, pa.Table], trace_ids: pa.Array) -> dict[str, pa.Table]:
    """Remove the rows of some traces."""
    return {
        name: rows.filter(pc.invert(pc.is_in(rows["trace_id"], value_set=trace_ids)))
        for name, rows in tables.items()
    }
