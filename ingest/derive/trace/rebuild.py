"""All traces of a lake derived anew from its base rows, in one pass over its ranges in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.trace.assembly import (
    MESSAGE_COLUMNS,
    TRANSACTION_COLUMNS,
    OpenTraces,
    assemble,
)
from tonlake.ingest.derive.trace.derivation import TRACE_TABLES, open_files
from tonlake.ingest.errors import TraceImpossible
from tonlake.lake.commit.rewrite import commit_derived
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Derivation, NewFile, Place, list_places, read_place
from tonlake.lake.schema import MESSAGES, TABLES, TRACES, TRANSACTION_TRACES, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from tonlake.lake.log.state import Commit, LogState
    from tonlake.lake.settings import LakeSettings

_COLUMNS = {TRANSACTIONS.name: TRANSACTION_COLUMNS, MESSAGES.name: MESSAGE_COLUMNS}


def rebuild_traces(
    lake_dir: Path,
    settings: LakeSettings,
    on_range: Callable[[int, int], None] = lambda _done, _all: None,
) -> Commit | None:
    """Drop all traces and derive them again; None if nothing differs from what was there.

    Args:
        lake_dir: Folder of the lake.
        settings: File options.
        on_range: Called after each range with the number of ranges done and of all.

    Raises:
        LakeNotFound: the folder holds no lake.
        LakeCorrupt: a base file is damaged.
        TraceImpossible: the messages are not those of a chain.
    """

    def derive(state: LogState) -> Derivation:
        old = frozenset(file.path for file in state.files if file.table in TRACE_TABLES)
        return Derivation(_derive_all(lake_dir, state, on_range), old)

    return commit_derived(lake_dir, settings, derive)


def _derive_all(
    lake_dir: Path, state: LogState, on_range: Callable[[int, int], None]
) -> Iterator[NewFile]:
    places = list_places(state)
    base = {
        (file.table, read_place(file.path)): file for file in state.files if file.table in _COLUMNS
    }
    before = OpenTraces()
    for done, place in enumerate(places, 1):
        rows = [
            read_rows(lake_dir, base[name, place], columns)
            if (name, place) in base
            else TABLES[name].empty
            for name, columns in _COLUMNS.items()
        ]
        step = assemble(rows[0], rows[1], before)
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
