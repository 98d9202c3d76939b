"""Finds traces that span a border or are incomplete, and drops those that can never complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import NewFile, is_open, list_files, read_place
from tonlake.lake.schema import TRACES

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.lake.log.state import LogState


def find_unfinished(lake_dir: Path, state: LogState, border: int) -> pa.ChunkedArray:
    """Return the traces that began before a border and end after it, or may still continue.

    Raises:
        LakeCorrupt: a file of traces is damaged.
    """
    began = pc.field("mc_seqno_start") < border
    crossing = began & (pc.field("mc_seqno_end") >= border)
    found = [TRACES.empty.select(["trace_id"])]
    for file in list_files(state, TRACES.name):
        if is_open(file.path):
            waiting = began & ~_is_dead(border)
            found.append(read_rows(lake_dir, file).filter(waiting).select(["trace_id"]))
        elif read_place(file.path).last >= border:
            found.append(read_rows(lake_dir, file, ("trace_id",), crossing))
    return pa.concat_tables(found)["trace_id"]


def _is_dead(border: int) -> pc.Expression:
    """Return the predicate: incomplete, ended before a border, waits only for blocks before it."""
    is_over = (pc.field("state") == "broken") & (pc.field("pending_messages") == 0)
    return is_over & (pc.field("mc_seqno_end") < border)


def drop_dead_traces(
    lake_dir: Path, state: LogState, border: int
) -> tuple[list[NewFile], frozenset[str]]:
    """Return the open files without traces that can never complete, and the paths they replace.

    Raises:
        LakeCorrupt: an open file is damaged.
    """
    files = {file.table: file for file in state.files if is_open(file.path)}
    if TRACES.name not in files:
        return [], frozenset()
    traces = read_rows(lake_dir, files[TRACES.name])
    dead = traces.filter(_is_dead(border))["trace_id"].combine_chunks()
    if not len(dead):
        return [], frozenset()
    made = []
    for name, file in files.items():
        rows = traces if name == TRACES.name else read_rows(lake_dir, file)
        stays = pc.invert(pc.is_in(rows["trace_id"], dead))
        made.append(NewFile(name, read_place(file.path), rows.filter(stays)))
    return made, frozenset(file.path for file in files.values())
