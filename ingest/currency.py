"""Extra currencies that a block leaves out as unchanged, taken from blocks before it.

A block prunes what it does not change. The dictionary of an account's extra currencies is a part
of its balance that is read, not only hashed, so its cells are looked up among the state cells of
the commit at hand and of the lake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ingest.block.currency import read_extra_currencies
from ingest.cell.boc import parse_boc
from ingest.cell.record import assemble_boc
from ingest.errors import MissingCell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ingest.statecell import CellFinder, Cells


TEXTS_KEPT = 10_000
"""Dictionaries remembered; from there on all are forgotten and looked up again."""


class CurrencyBook:
    """Dictionaries of extra currencies by hash, remembered from commit to commit of one run."""

    def __init__(self, finder: CellFinder) -> None:
        """Look cells up with ``finder``."""
        self._finder = finder
        self._texts: dict[bytes, str | None] = {}

    def complete(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Return ``account_states`` with the extra currencies that its rows leave open.

        A dictionary that lies before the lake's first block stays NULL beside its hash.
        """
        states = tables["account_states"]
        left_open = pc.and_(
            pc.is_valid(states["extra_currencies_hash"]), pc.is_null(states["extra_currencies"])
        )
        hashes = states["extra_currencies_hash"].filter(left_open).to_pylist()
        if not hashes:
            return states
        if len(self._texts) > TEXTS_KEPT:
            self._texts.clear()
        unknown = {wanted for wanted in hashes if self._texts.get(wanted) is None}
        # What the lake lacked once it still lacks, unless this commit brings it.
        absent = unknown & self._texts.keys()
        cells = self._finder.find_trees(unknown - absent, tables["state_cells"])
        cells |= self._finder.find_trees(absent, tables["state_cells"], in_lake=False)
        self._texts |= {wanted: _read_text(wanted, cells) for wanted in unknown}
        texts = pa.array(
            map(self._texts.get, states["extra_currencies_hash"].to_pylist()), pa.string()
        )
        column = states.schema.get_field_index("extra_currencies")
        filled = pc.coalesce(states["extra_currencies"], texts)
        return states.set_column(column, states.schema.field(column), filled)


def _read_text(root: bytes, cells: Cells) -> str | None:
    try:
        tree = parse_boc(assemble_boc(root, cells))
    except MissingCell:
        return None
    return read_extra_currencies(tree, tree.roots[0])
