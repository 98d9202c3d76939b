"""Traces that become unfinished again when the newest blocks of a lake are undone.

A trace is complete in the range where it ends, so what stays of earlier ranges stays as it is.
Traces that began before the border and ended behind it, or were open, are assembled anew from
those of their transactions that stay.
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
from tonlake.ingest.derive.trace.derivation import open_files
from tonlake.ingest.errors import TraceImpossible
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import is_open, list_places, read_place
from tonlake.lake.schema import MESSAGES, TABLES, TRACES, TRANSACTION_TRACES, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tonlake.lake.log.place import NewFile, Place
    from tonlake.lake.log.state import LogState


def reopen_traces(lake_dir: Path, state: LogState, first_gone: int) -> list[NewFile]:
    """Return the open files of a lake without its masterchain blocks from ``first_gone`` on.

    Raises:
        LakeCorrupt: a file that is needed is damaged.
        TraceImpossible: the lake's traces are not those of its rows.
    """
    places = [place for place in list_places(state) if place.first < first_gone]
    starts = _list_cut(lake_dir, state, first_gone)
    oldest = pc.min(starts["mc_seqno_start"]).as_py() if starts.num_rows else first_gone
    near = {place for place in places if place.last >= oldest}
    ids = starts["trace_id"].combine_chunks()
    stays = pc.field("mc_seqno") < first_gone
    hashes = _read(
        lake_dir,
        state,
        near,
        TRANSACTION_TRACES.name,
        ("hash",),
        stays & pc.field("trace_id").isin(ids),
    )["hash"].combine_chunks()
    transactions = _read(
        lake_dir,
        state,
        near,
        TRANSACTIONS.name,
        TRANSACTION_COLUMNS,
        stays & pc.field("hash").isin(hashes),
    )
    messages = _read(
        lake_dir,
        state,
        near,
        MESSAGES.name,
        MESSAGE_COLUMNS,
        stays & pc.field("tx_hash").isin(hashes),
    )
    step = assemble(transactions, messages, OpenTraces())
    if step.complete.num_rows:
        raise TraceImpossible(
            f"{step.complete.num_rows} traces that are said to go on after masterchain block"
            f" {first_gone - 1} end before it: run `tonlake rebuild traces`"
        )
    return list(open_files(step.open, places[-1]))


def _list_cut(lake_dir: Path, state: LogState, first_gone: int) -> pa.Table:
    """Return id and start of the traces that have blocks before the border and are not over."""
    columns = ("trace_id", "mc_seqno_start")
    before = pc.field("mc_seqno_start") < first_gone
    cut = before & (pc.field("mc_seqno_end") >= first_gone)
    parts = [
        read_rows(lake_dir, file, columns, before if is_open(file.path) else cut)
        for file in state.files
        if file.table == TRACES.name
        and (is_open(file.path) or read_place(file.path).last >= first_gone)
    ]
    fields = pa.schema([TRACES.arrow.field(name) for name in columns])
    return pa.concat_tables([fields.empty_table(), *parts])


def _read(
    lake_dir: Path,
    state: LogState,
    places: set[Place],
    table: str,
    columns: Sequence[str],
    where: pc.Expression,
) -> pa.Table:
    fields = pa.schema([TABLES[table].arrow.field(name) for name in columns])
    parts = [
        read_rows(lake_dir, file, columns, where)
        for file in state.files
        if file.table == table and read_place(file.path) in places
    ]
    return pa.concat_tables([fields.empty_table(), *parts])
