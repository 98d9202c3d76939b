"""All contracts of a lake derived anew from its base rows, range by range."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from tonlake.ingest.assemble.statecell import CellFinder
from tonlake.ingest.derive.contract.derivation import ContractFinder
from tonlake.lake.commit.rewrite import commit_derived
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Derivation, NewFile, Place, list_places, read_place
from tonlake.lake.schema import BASE_TABLES, BLOCKS, CONTRACT_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tonlake.ingest.settings import IngestSections
    from tonlake.ingest.span import Span
    from tonlake.lake.log.state import Commit, DataFile, LogState

_BASE = frozenset(table.name for table in BASE_TABLES)
_DERIVED = frozenset(table.name for table in CONTRACT_TABLES)


def rebuild_contracts(
    lake_dir: Path,
    settings: IngestSections,
    on_range: Callable[[int, int], None] = lambda _done, _all: None,
    *,
    within: Sequence[Span] | None = None,
) -> Commit | None:
    """Drop what is known of contracts and derive it again; None if nothing differs.

    Ranges without blocks, which recorded traces have, keep what was recorded.

    Args:
        lake_dir: Folder of the lake.
        settings: File options, and limits of get-methods.
        on_range: Called after each range with the number of ranges done and of all.
        within: Masterchain blocks whose ranges are derived again; None for all.

    Raises:
        LakeNotFound: the folder holds no lake.
        LakeCorrupt: a base file is damaged.
    """

    def derive(state: LogState) -> Derivation:
        base = {
            place: files
            for place, files in _list_base(state).items()
            if within is None or any(span.first <= place.first <= span.last for span in within)
        }
        return Derivation(
            files=_derive_all(lake_dir, state, base, settings, on_range),
            removed=frozenset(
                file.path
                for file in state.files
                if file.table in _DERIVED and read_place(file.path) in base
            ),
        )

    return commit_derived(lake_dir, settings.lake, derive)


def _list_base(state: LogState) -> dict[Place, list[DataFile]]:
    """Return the files of base rows of the ranges that have blocks."""
    found: dict[Place, list[DataFile]] = {place: [] for place in list_places(state)}
    for file in state.files:
        if file.table in _BASE:
            found[read_place(file.path)].append(file)
    return {
        place: files
        for place, files in found.items()
        if any(file.table == BLOCKS.name for file in files)
    }


def _derive_all(
    lake_dir: Path,
    state: LogState,
    base: dict[Place, list[DataFile]],
    settings: IngestSections,
    on_range: Callable[[int, int], None],
) -> Iterator[NewFile]:
    with (
        closing(CellFinder(lake_dir, settings)) as cells,
        closing(ContractFinder(lake_dir, settings, cells)) as finder,
    ):
        for done, (place, files) in enumerate(base.items(), 1):
            rows = {file.table: read_rows(lake_dir, file) for file in files}
            for name, table in sorted(finder.derive(state, rows, place.first).items()):
                yield NewFile(name, place, table)
            on_range(done, len(base))
