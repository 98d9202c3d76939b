"""Upgrading a lake of an earlier version: derived tables that it lacks are added.

Existing files and snapshots stay readable as they are; additions are ordinary commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.rebuild import rebuild_actions
from tonlake.ingest.derive.contract.rebuild import rebuild_contracts
from tonlake.ingest.derive.stages import STAGES
from tonlake.ingest.derive.trace.rebuild import rebuild_traces
from tonlake.ingest.span import Span
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.place import read_place
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import ACCOUNT_STATES, TRANSACTION_TRACES, TRANSACTIONS
from tonlake.lake.schema.contract import INTERFACES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tonlake.ingest.settings import IngestSections
    from tonlake.lake.log.state import Commit, LogState

_DONE = {
    "traces": "traces derived",
    "contracts": "contracts found",
    "actions": "actions classified",
}


def upgrade_lake(lake_dir: Path, settings: IngestSections) -> Iterator[tuple[str, Commit]]:
    """Derive what the lake lacks, and yield what was done with each commit.

    Nothing is done twice: a lake of this version gives no commit, and a run that was stopped goes
    on where it was.

    Raises:
        LakeNotFound: the folder holds no lake.
        LakeTooNew: a later version has written to it.
        LakeCorrupt: a file that is needed is damaged.
        LakeFull: no room; what was done before stays.
    """
    rebuilds = {"traces": _add_traces, "contracts": _add_contracts, "actions": _add_actions}
    for stage in STAGES:
        yield from _name(_DONE[stage.name], rebuilds[stage.name](lake_dir, settings))
    if settings.lake.build_index:
        yield from _name("look-ups made", rebuild_index(lake_dir))


def _add_traces(lake_dir: Path, settings: IngestSections) -> Commit | None:
    state = read_state(lake_dir)
    if not _list_lacking(state, TRANSACTIONS.name, TRANSACTION_TRACES.name):
        return None
    return rebuild_traces(lake_dir, settings.lake)


def _add_contracts(lake_dir: Path, settings: IngestSections) -> Commit | None:
    lacking = _list_lacking(read_state(lake_dir), ACCOUNT_STATES.name, INTERFACES.name)
    if not lacking or not settings.ingest.detect_contracts:
        return None
    return rebuild_contracts(lake_dir, settings, within=lacking)


def _add_actions(lake_dir: Path, settings: IngestSections) -> Commit | None:
    return rebuild_actions(lake_dir, settings.lake) if settings.ingest.classify_actions else None


def _name(what: str, commit: Commit | None) -> Iterator[tuple[str, Commit]]:
    if commit is not None:
        yield what, commit


def _list_lacking(state: LogState, base: str, derived: str) -> list[Span]:
    """Return the spans that have files of a table, and none of the table derived from it."""
    places = {
        name: {read_place(file.path) for file in state.files if file.table == name}
        for name in (base, derived)
    }
    return [Span(place.first, place.last) for place in sorted(places[base] - places[derived])]
