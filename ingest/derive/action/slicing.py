"""Traces classified slice by slice, in this process or in several.

A slice goes out with its own rows and comes back as rows of actions, so any process can take it.
What its accounts are beyond these rows is asked of the lake between two rounds.
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

_MOST, _LEAST, _SLICES = 8_000, 1_000, 8
"""Transactions of a slice, as its messages are Python objects; medium inputs have eight slices."""


class Slice(NamedTuple):
    """Complete traces (rows of ``traces``), rows with theirs, and what was looked up for each."""

    traces: pa.Table
    rows: Rows
    facts: FactsByTrace


class _Order(NamedTuple):
    """A slice to be classified in any process, which finds its rows among all."""

    traces: pa.Table
    rows: Shared[Rows]
    facts: FactsByTrace


class _Outcome(NamedTuple):
    """Rows of action tables by name, how many traces they are of, and the accounts these miss."""

    tables: dict[str, pa.Table]
    traces: int
    missed: dict[bytes, set[Asked]]


class Classification(NamedTuple):
    """Rows of action tables for some traces, how many traces, and what was looked up for them."""

    tables: dict[str, pa.Table]
    traces: int
    facts: dict[bytes, dict[str, Facts]]


def classify_traces(
    traces: pa.Table,
    rows: Rows,
    find_known: FindKnown = find_nothing,
    spread: Spread = HERE,
) -> Classification:
    """Classify complete traces, given as rows of ``traces``.

    A trace is classified again with the accounts that it missed, until it misses none.

    Args:
        traces: Rows of ``traces``.
        rows: Rows of all their transactions.
        find_known: Returns what other accounts were at the end of a trace.
        spread: The processes that take slices; the result does not depend on it.
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
    """Add what was missed to the facts; return the traces for which anything was found."""
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
    """Yield traces in slices, each with its facts; one slice without any for no traces."""
    for start, end in pairwise(_find_cuts(traces)):
        part = traces.take(pa.arange(start, end))  # a slice would be sent with all of the rest
        own = (
            {key: facts[key] for key in part["trace_id"].to_pylist() if key in facts}
            if facts
            else {}
        )
        yield _Order(part, rows, own)


def _find_cuts(traces: pa.Table) -> list[int]:
    """Return the places of the first trace of each slice, and the end of the last one."""
    counts = traces["transactions"].to_pylist()
    size = min(_MOST, max(_LEAST, sum(counts) // _SLICES))
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
    """Yield the traces of a slice with what is known of their accounts, and what they did."""
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
    """Leave out the rows of some traces."""
    return {
        name: rows.filter(pc.invert(pc.is_in(rows["trace_id"], value_set=trace_ids)))
        for name, rows in tables.items()
    }
