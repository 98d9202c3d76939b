"""All actions of a lake made anew, range by range; base rows and traces stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.action.account.known import KnownContracts
from tonlake.ingest.derive.action.derivation import classify_traces, list_action_files, make_range
from tonlake.ingest.derive.action.gathering import gather_sources
from tonlake.ingest.derive.action.precedence import CLASSIFIER_VERSION
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Derivation, NewFile, Place, list_places, read_place
from tonlake.lake.schema import TRACES
from tonlake.lake.schema.action import ACTION_RANGES, ACTIONS, SUPERSEDED_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tonlake.ingest.settings import IngestSections
    from tonlake.ingest.span import Scope
    from tonlake.lake.log.state import DataFile, LogState

_COMPARED = ("trace_id", "action_id", "type", "success", "accounts", "details", "amount", "value")
"""Columns in which actions of two versions are told apart."""


def rederive_actions(
    lake_dir: Path, state: LogState, settings: IngestSections, scope: Scope
) -> Derivation | None:
    """Return the action files of ranges that another version classified, or none did.

    With ``scope.within`` they are those of the ranges there that are classified already, as what is
    known of their accounts changed; their rows supersede none.

    Raises:
        LakeCorrupt: a file that is needed is damaged.
    """
    mine = list_action_files(state)
    places = [each for each in list_places(state) if scope.covers(each)]
    if scope.within is not None:
        places = [each for each in places if each in mine]
    elif not scope.everything:
        places = [each for each in places if not _is_current(lake_dir, each, mine.get(each, {}))]
    if not places:
        return None
    return Derivation(
        files=_derive_all(
            KnownContracts(lake_dir, settings.lake, state), lake_dir, state, places, scope
        ),
        removed=frozenset(file.path for place in places for file in mine.get(place, {}).values()),
    )


def _is_current(lake_dir: Path, place: Place, files: Mapping[str, DataFile]) -> bool:
    """Whether this version classified every block of a place."""
    if ACTION_RANGES.name not in files:
        return False
    rows = read_rows(lake_dir, files[ACTION_RANGES.name]).to_pylist()
    done = sum(row["last_mc_seqno"] - row["first_mc_seqno"] + 1 for row in rows)
    versions = {row["classifier_version"] for row in rows}
    return versions == {CLASSIFIER_VERSION} and done == place.last - place.first + 1


def _derive_all(
    known: KnownContracts, lake_dir: Path, state: LogState, places: list[Place], scope: Scope
) -> Iterator[NewFile]:
    mine = list_action_files(state)
    keeps_old = scope.within is None
    for done, place in enumerate(places, 1):
        traces = _read_traces(lake_dir, state, place)
        sources = gather_sources(lake_dir, state, traces, {}, place)
        tables, count = classify_traces(traces, sources, known.find)
        for name, rows in tables.items():
            yield NewFile(name, place, rows)
        actions = tables[ACTIONS.name]
        yield NewFile(ACTION_RANGES.name, place, make_range(place, count, actions.num_rows))
        before = mine.get(place, {})
        if not keeps_old and SUPERSEDED_ACTIONS.name in before:
            old = read_rows(lake_dir, before[SUPERSEDED_ACTIONS.name])
            yield NewFile(SUPERSEDED_ACTIONS.name, place, old)
        elif keeps_old and ACTIONS.name in before:
            old = read_rows(lake_dir, before[ACTIONS.name])
            yield NewFile(SUPERSEDED_ACTIONS.name, place, find_superseded(old, actions))
        scope.on_range(done, len(places))


def _read_traces(lake_dir: Path, state: LogState, place: Place) -> pa.Table:
    parts = [
        read_rows(lake_dir, file)
        for file in state.files
        if file.table == TRACES.name and read_place(file.path) == place
    ]
    return pa.concat_tables(parts) if parts else TRACES.empty


def find_superseded(old: pa.Table, new: pa.Table) -> pa.Table:
    """Return the old rows of all traces of which the new rows say something else."""
    before, after = _sum_up(old), _sum_up(new)
    changed = [trace_id for trace_id, said in before.items() if after.get(trace_id) != said]
    wanted = pa.array(changed, ACTIONS.arrow.field("trace_id").type)
    return old.filter(pc.is_in(old["trace_id"], value_set=wanted))


def _sum_up(actions: pa.Table) -> dict[bytes, list[str]]:
    """Return what is said of each trace, in an order that does not depend on that of rows."""
    said: dict[bytes, list[str]] = {}
    for row in actions.select(_COMPARED).to_pylist():
        said.setdefault(row["trace_id"], []).append(repr(row))
    return {trace_id: sorted(rows) for trace_id, rows in said.items()}
