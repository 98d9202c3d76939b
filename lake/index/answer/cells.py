"""Cells by hash, from memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.lake.index.index import Index

Row = dict[str, Any]


def find_cells(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``cells``."""
    found = index.cells.find(asked["hashes"])
    return [{"hash": key, "cell": cell, "refs": refs} for key, (cell, refs) in found.items()]
