"""Whole trees of cells by the hashes of their roots: out of memory, or level by level by query."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lake.cells import PackedCell
    from queries.reader import Reader


def find_cell_trees(reader: Reader, roots: Iterable[bytes]) -> dict[bytes, PackedCell]:
    """Return the cells with these hashes and all below them, as far as the snapshot has them."""
    if reader.cells is not None:
        return reader.cells.read_trees(roots)
    found: dict[bytes, PackedCell] = {}
    wanted = set(roots)
    while wanted:
        rows = reader.rows("cells", hashes=sorted(wanted))
        found |= {row["hash"]: (row["cell"], row["refs"]) for row in rows}
        wanted = {kid for row in rows for kid in row["refs"]} - found.keys()
    return found
