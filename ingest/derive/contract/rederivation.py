"""Derives contract files again: of ranges with blocks, and of the parts of the baseline.

They do not depend on each other, so any process can derive each of them.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from tonlake.ingest.assemble.statecell import CellFinder
from tonlake.ingest.derive.contract.derivation import ContractFinder, open_finder
from tonlake.lake.log.place import (
    Derivation,
    list_baseline_files,
    list_files_between,
    list_places,
    read_place,
)
from tonlake.lake.schema import ACCOUNT_STATES, BASE_TABLES, BLOCKS, CONTRACT_TABLES, STATE_CELLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tonlake.ingest.settings import IngestSections
    from tonlake.ingest.span import Scope
    from tonlake.lake.log.place import NewFile, Place
    from tonlake.lake.log.state import DataFile, LogState

_BASE = frozenset(table.name for table in BASE_TABLES)
_DERIVED = frozenset(table.name for table in CONTRACT_TABLES)


def rederive_contracts(
    lake_dir: Path, state: LogState, settings: IngestSections, scope: Scope
) -> Derivation:
    """Return the contract files of the ranges in a scope that have blocks.

    Ranges without blocks, which come from recorded traces, keep their recorded rows.

    Raises:
        LakeCorrupt: a base file is damaged.
    """
    base = {place: files for place, files in _list_base(state).items() if scope.covers(place)}
    baseline = _list_baseline(state, scope)
    old = frozenset(
        file.path
        for file in state.files
        if file.table in _DERIVED and ((at := read_place(file.path)) in base or at in baseline)
    )
    parts = [(at, files) for at, several in baseline.items() for files in several]
    parts += base.items()
    return Derivation(_rederive_ranges(lake_dir, state, settings, parts, scope), old)


def _list_baseline(state: LogState, scope: Scope) -> dict[Place, list[list[DataFile]]]:
    """Return the parts of the baseline, each of one file of account states and one of cells.

    Cells in other parts are found through the lake. The first blocks of the lake have the global
    version.
    """
    # The file of a part's cells follows the file of its states.
    files = [file for held in state.by_place.values() for file in held]
    behind = dict(zip((file.path for file in files), files[1:], strict=False))
    states = list_baseline_files(state, ACCOUNT_STATES.name)
    places = [place for file in states[:1] if scope.covers(place := read_place(file.path))]
    blocks = [
        file
        for place in places
        for file in list_files_between(state, place.first + 1, place.first + 1, BLOCKS.name)[:1]
    ]
    parts = []
    for file in states:
        cells = behind.get(file.path)
        is_pair = cells is not None and cells.table == STATE_CELLS.name
        parts.append([file, *([cells] if is_pair and cells is not None else []), *blocks])
    return dict.fromkeys(places, parts)


def _list_base(state: LogState) -> dict[Place, list[DataFile]]:
    """Return the base files of the ranges that have blocks."""
    found: dict[Place, list[DataFile]] = {place: [] for place in list_places(state)}
    for file in state.files:
        if file.table in _BASE and (place := read_place(file.path)) in found:
            found[place].append(file)
    return {
        place: files
        for place, files in found.items()
        if any(file.table == BLOCKS.name for file in files)
    }


def _rederive_ranges(
    lake_dir: Path,
    state: LogState,
    settings: IngestSections,
    parts: Sequence[tuple[Place, list[DataFile]]],
    scope: Scope,
) -> Iterator[NewFile]:
    with (
        closing(CellFinder(lake_dir, settings)) as cells,
        closing(ContractFinder(lake_dir, settings, cells)) as finder,
    ):
        made: Iterable[Derivation]
        if scope.spread.count == 1:
            made = (finder.rederive(state, part) for part in parts)
        else:
            made = scope.spread.map(partial(_rederive_elsewhere, lake_dir, settings), parts)
        for done, derivation in enumerate(made, 1):
            yield from derivation.files
            scope.on_range(done, len(parts))


def _rederive_elsewhere(
    lake_dir: Path, settings: IngestSections, part: tuple[Place, list[DataFile]]
) -> Derivation:
    """Derive a range in a worker process, which keeps the lake open."""
    return open_finder(lake_dir, settings).rederive(None, part)
