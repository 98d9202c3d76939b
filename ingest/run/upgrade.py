"""Upgrades a lake of an earlier version by adding missing derived tables.

Existing files and snapshots stay readable; additions are ordinary commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.stages import STAGES, rebuild
from tonlake.ingest.span import Scope, Span
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.place import list_files, read_place
from tonlake.lake.log.state import read_state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tonlake.ingest.settings import IngestSections
    from tonlake.lake.log.state import Commit, LogState

_DONE = {
    "traces": "traces derived",
    "contracts": "contracts found",
    "actions": "actions classified",
    "bodies": "bodies decoded",
}


def upgrade_lake(lake_dir: Path, settings: IngestSections) -> Iterator[tuple[str, Commit]]:
    """Derive missing tables, and yield each commit with a description.

    Nothing is done twice: a lake of this version yields no commit, and a stopped run can be
    resumed.

    Raises:
        LakeNotFound: the folder has no lake.
        LakeTooNew: a later version has written to it.
        LakeCorrupt: a file is damaged.
        LakeFull: the disk is full; earlier commits are kept.
    """
    for stage in STAGES:
        scope = Scope()
        if stage.marker is not None:
            scope = Scope(within=_list_lacking(read_state(lake_dir), *stage.marker))
        if stage.enabled(settings) and scope.within != []:
            yield from _name(_DONE[stage.name], rebuild(stage.name, lake_dir, settings, scope))
    if settings.lake.build_index:
        yield from _name("index built", rebuild_index(lake_dir))


def _name(what: str, commit: Commit | None) -> Iterator[tuple[str, Commit]]:
    if commit is not None:
        yield what, commit


def _list_lacking(state: LogState, base: str, derived: str) -> list[Span]:
    """Return the spans with files of ``base`` but without files of ``derived``."""
    places, done = (
        {read_place(file.path) for file in list_files(state, name)} for name in (base, derived)
    )
    return [Span(place.first, place.last) for place in sorted(places - done)]
