"""Fills in extra currencies that a block omits as unchanged, from earlier blocks.

A block prunes what it does not change. The dictionary of an account's extra currencies is stored
as decoded values, not only as a hash, so its cells are looked up among the state cells of the
current commit and of the lake. If an earlier range with these cells is ingested later, the rows are
completed then.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.assemble.statecell import CellFinder, Cells
from tonlake.ingest.decode.block.message import read_extra_currencies
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.packed import assemble_boc
from tonlake.ingest.errors import MissingCell
from tonlake.ingest.span import Span
from tonlake.lake.commit.rewrite import commit_maintenance
from tonlake.lake.file.datafile import write_changes
from tonlake.lake.file.rows import read_rows
from tonlake.lake.index.builder.plan import range_of
from tonlake.lake.log.disk import LOCK_FILE, hold_lock
from tonlake.lake.log.place import Derivation, NewFile, list_files, read_place
from tonlake.lake.log.ranges import overlaps
from tonlake.lake.log.state import Commit, DataFile, read_state
from tonlake.lake.schema import ACCOUNT_STATES, STATE_CELLS
from tonlake.lake.settings import LakeSettings

_TEXT, _HASH = "extra_currencies", "extra_currencies_hash"
TEXTS_KEPT = 10_000
"""Maximum number of cached dictionaries; beyond it the cache is cleared."""


class CurrencyRegistry:
    """Dictionaries of extra currencies by hash, cached from commit to commit."""

    def __init__(self, finder: CellFinder) -> None:
        """Look up cells with ``finder``."""
        self._finder = finder
        self._texts: dict[bytes, str | None] = {}

    def complete(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Return ``account_states`` with missing extra currencies filled in.

        A dictionary whose cells predate the lake's first block stays NULL beside its hash.
        """
        states = tables["account_states"]
        left_open = pc.and_(pc.is_valid(states[_HASH]), pc.is_null(states[_TEXT]))
        hashes = states[_HASH].filter(left_open).to_pylist()
        if not hashes:
            return states
        if len(self._texts) > TEXTS_KEPT:
            self._texts.clear()
        unknown = {root for root in hashes if self._texts.get(root) is None}
        # Cells that were not in the lake before can only come with this commit.
        absent = unknown & self._texts.keys()
        cells = self._finder.find_trees(unknown - absent, tables["state_cells"])
        cells |= self._finder.find_trees(absent, tables["state_cells"], in_lake=False)
        self._texts |= {root: _read_text(root, cells) for root in unknown}
        texts = pa.array(map(self._texts.get, states[_HASH].to_pylist()), pa.string())
        column = states.schema.get_field_index(_TEXT)
        filled = pc.coalesce(states[_TEXT], texts)
        return states.set_column(column, states.schema.field(column), filled)


def complete_states(
    lake_dir: Path, settings: LakeSettings, finder: CellFinder, within: Sequence[Span]
) -> Commit | None:
    """Fill in missing extra currencies whose dictionaries came with an earlier range.

    Only ranges within the spans ``within`` are completed. Index segments over changed ranges are
    dropped; the next rebuild builds them. Return None if nothing changed.

    Raises:
        LakeNotFound: the folder has no lake.
        LakeCorrupt: a file is damaged.
        LakeFull: the disk is full; nothing was committed.
    """
    with hold_lock(lake_dir / LOCK_FILE):
        state = read_state(lake_dir)
        registry = CurrencyRegistry(finder)
        added = []
        removed = set()
        for file in list_files(state, ACCOUNT_STATES.name):
            place = read_place(file.path)
            if not any(span.first <= place.first <= span.last for span in within):
                continue
            rows = _complete_file(lake_dir, file, registry)
            if rows is not None:
                added.append(NewFile(file.table, place, rows))
                removed.add(file.path)
        if not added:
            return None
        changes = write_changes(lake_dir, state, Derivation(added, frozenset(removed)), settings)
        changed = tuple((file.place.first, file.place.last) for file in added)
        segments = tuple(
            segment for segment in state.segments if not overlaps(changed, range_of(segment))
        )
        return commit_maintenance(
            lake_dir, state, added=changes.added, removed=changes.removed, segments=segments
        )


def _complete_file(lake_dir: Path, file: DataFile, registry: CurrencyRegistry) -> pa.Table | None:
    """Return the completed rows of an ``account_states`` file; None if nothing was added."""
    cells = {STATE_CELLS.name: STATE_CELLS.empty}
    few = read_rows(lake_dir, file, (_TEXT, _HASH))
    completed = registry.complete({ACCOUNT_STATES.name: few, **cells})
    if completed[_TEXT].null_count == few[_TEXT].null_count:
        return None
    return registry.complete({ACCOUNT_STATES.name: read_rows(lake_dir, file), **cells})


def _read_text(root: bytes, cells: Cells) -> str | None:
    try:
        tree = parse_boc(assemble_boc(root, cells))
    except MissingCell:
        return None
    return read_extra_currencies(tree, tree.roots[0])
