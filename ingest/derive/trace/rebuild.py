"""Traces derived again: all of a lake from its base rows, or those cut by an undo.

A trace is complete in the range where it ends. So when the newest blocks are undone, what stays of
earlier ranges stays as it is, and traces that began before the border and ended behind it, or were
open, are assembled from those of their transactions that stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.trace.assembly import (
    MESSAGE_COLUMNS,
    TRANSACTION_COLUMNS,
    OpenTraces,
    assemble,
)
from tonlake.ingest.derive.trace.derivation import TRACE_TABLES, open_files
from tonlake.ingest.errors import TraceImpossible
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.bytable import list_files
from tonlake.lake.log.place import Derivation, NewFile, is_open, list_places, read_place
from tonlake.lake.schema import MESSAGES, TABLES, TRACES, TRANSACTION_TRACES, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tonlake.ingest.derive.scope import Scope
    from tonlake.ingest.settings import IngestSections
    from tonlake.lake.log.place import Place
    from tonlake.lake.log.state import LogState

_COLUMNS = {TRANSACTIONS.name: TRANSACTION_COLUMNS, MESSAGES.name: MESSAGE_COLUMNS}


def rederive_traces(
    lake_dir: Path, state: LogState, _settings: IngestSections, scope: Scope
) -> Derivation:
    """Return the trace files of all ranges, in place of the present ones.

    Raises:
        LakeCorrupt: a base file is damaged.
        TraceImpossible: the messages are not those of a chain.
    """
    old = frozenset(file.path for file in list_files(state, *TRACE_TABLES))
    return Derivation(_rederive_ranges(lake_dir, state, scope.on_range), old)


def _rederive_ranges(
    lake_dir: Path, state: LogState, on_range: Callable[[int, int], None]
) -> Iterator[NewFile]:
    places = list_places(state)
    base = {(file.table, read_place(file.path)): file for file in list_files(state, *_COLUMNS)}
    before = OpenTraces()
    for done, place in enumerate(places, 1):
        transactions, messages = (
            read_rows(lake_dir, base[name, place], columns)
            if (name, place) in base
            else TABLES[name].empty
            for name, columns in _COLUMNS.items()
        )
        step = assemble(transactions, messages, before)
        _check_order(step.moved, step.complete, place)
        before = step.open
        yield NewFile(TRANSACTION_TRACES.name, place, step.transactions)
        yield NewFile(TRACES.name, place, step.complete)
        on_range(done, len(places))
    if places:
        yield from open_files(before, places[-1])


def _check_order(moved: pa.Table, complete: pa.Table, place: Place) -> None:
    """Refuse rows by which a trace is continued in a masterchain block before its root's."""
    ends = complete["mc_seqno_end"].to_pylist()
    if moved.num_rows or any(not place.first <= end <= place.last for end in ends):
        raise TraceImpossible(
            f"a message sent in masterchain blocks {place.first}..{place.last} was consumed in "
            "an earlier one: the rows of transactions and messages are not those of a chain"
        )


def reopen_traces(lake_dir: Path, state: LogState, first_gone: int) -> list[NewFile]:
    """Return the open files of a lake without its masterchain blocks from ``first_gone`` on.

    Raises:
        LakeCorrupt: a file that is needed is damaged.
        TraceImpossible: the lake's traces are not those of its rows.
    """
    places = [place for place in list_places(state) if place.first < first_gone]
    starts = _list_cut(lake_dir, state, first_gone)
    oldest = pc.min(starts["mc_seqno_start"]).as_py() if starts.num_rows else first_gone

    def read(table: str, columns: Sequence[str], key: str, values: pa.ChunkedArray) -> pa.Table:
        fields = pa.schema([TABLES[table].arrow.field(name) for name in columns])
        stays = (pc.field("mc_seqno") < first_gone) & pc.field(key).isin(values.combine_chunks())
        rows = [
            read_rows(lake_dir, file, columns, stays)
            for file in list_files(state, table)
            if not is_open(file.path) and oldest <= read_place(file.path).last
            if read_place(file.path).first < first_gone
        ]
        return pa.concat_tables([fields.empty_table(), *rows])

    hashes = read(TRANSACTION_TRACES.name, ("hash",), "trace_id", starts["trace_id"])["hash"]
    transactions = read(TRANSACTIONS.name, TRANSACTION_COLUMNS, "hash", hashes)
    messages = read(MESSAGES.name, MESSAGE_COLUMNS, "tx_hash", hashes)
    step = assemble(transactions, messages, OpenTraces())
    if step.complete.num_rows:
        raise TraceImpossible(
            f"{step.complete.num_rows} traces that are recorded as going on after masterchain "
            f"block {first_gone - 1} end before it: run `tonlake rebuild traces`"
        )
    return list(open_files(step.open, places[-1]))


def _list_cut(lake_dir: Path, state: LogState, first_gone: int) -> pa.Table:
    """Return id and start of the traces that have blocks before the border and are not over."""
    columns = ("trace_id", "mc_seqno_start")
    before = pc.field("mc_seqno_start") < first_gone
    cut = before & (pc.field("mc_seqno_end") >= first_gone)
    parts = [
        read_rows(lake_dir, file, columns, before if is_open(file.path) else cut)
        for file in list_files(state, TRACES.name)
        if is_open(file.path) or read_place(file.path).last >= first_gone
    ]
    fields = pa.schema([TRACES.arrow.field(name) for name in columns])
    return pa.concat_tables([fields.empty_table(), *parts])
