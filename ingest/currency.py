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
from lake.errors import LakeNotFound
from lake.snapshot import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from lake.settings import Settings

Cells = dict[bytes, tuple[bytes, list[bytes]]]
"""Packed cells, as ``state_cells`` keeps them: descriptors with data, and child hashes."""


class CurrencyBook:
    """Dictionaries of extra currencies by hash, remembered from commit to commit of one run."""

    def __init__(self, lake_dir: Path, settings: Settings) -> None:
        """Look up in ``lake_dir``, which need not be there yet."""
        self._lake_dir = lake_dir
        self._settings = settings
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
        known = {wanted: text for wanted in hashes if (text := self._texts.get(wanted))}
        unknown = set(hashes) - known.keys()
        cells = self._find_trees(unknown, tables["state_cells"])
        self._texts = known | {wanted: _read_text(wanted, cells) for wanted in unknown}
        texts = pa.array(
            map(self._texts.get, states["extra_currencies_hash"].to_pylist()), pa.string()
        )
        column = states.schema.get_field_index("extra_currencies")
        filled = pc.coalesce(states["extra_currencies"], texts)
        return states.set_column(column, states.schema.field(column), filled)

    def _find_trees(self, roots: set[bytes], fresh: pa.Table) -> Cells:
        """Find the cells under ``roots``, level by level, as far as they are known."""
        found: Cells = {}
        wanted = roots
        while wanted:
            level = _pick(fresh.filter(pc.is_in(fresh["hash"], _as_hashes(wanted, fresh))))
            level |= self._find_in_lake(wanted - level.keys())
            found |= level
            wanted = {kid for _, kids in level.values() for kid in kids} - found.keys()
        return found

    def _find_in_lake(self, wanted: set[bytes]) -> Cells:
        if not wanted:
            return {}
        try:
            snapshot = open_snapshot(self._lake_dir, check_digests=False)
        except LakeNotFound:
            return {}
        with snapshot.connect(self._settings) as connection:
            rows = connection.execute(
                "select hash, cell, refs from state_cells where hash in (select unnest($hashes))",
                {"hashes": sorted(wanted)},
            )
            return {row[0]: (row[1], row[2]) for row in rows.fetchall()}


def _pick(rows: pa.Table) -> Cells:
    columns = (rows[name].to_pylist() for name in ("hash", "cell", "refs"))
    return {row[0]: (row[1], row[2]) for row in zip(*columns, strict=True)}


def _as_hashes(hashes: Iterable[bytes], like: pa.Table) -> pa.Array:
    return pa.array(sorted(hashes), like.schema.field("hash").type)


def _read_text(root: bytes, cells: Cells) -> str | None:
    try:
        tree = parse_boc(assemble_boc(root, cells))
    except MissingCell:
        return None
    return read_extra_currencies(tree, tree.roots[0])
