"""The path of a lake's folder as DuckDB takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.lake.errors import LakeMisplaced

if TYPE_CHECKING:
    from pathlib import Path

_PATTERN_CHARACTERS = frozenset("*?[")


def name_root(lake_dir: Path) -> str:
    """Return the path of a lake's folder for statements that name its files.

    Raises:
        LakeMisplaced: it cannot be named so.
    """
    return check_root(str(lake_dir.absolute()))


def check_root(root: str) -> str:
    """Return the path of a lake's folder if DuckDB can take it: UTF-8, and nothing like a pattern.

    Raises:
        LakeMisplaced: it cannot; a pattern might match the files of another lake.
    """
    shown = root.encode(errors="surrogateescape").decode(errors="backslashreplace")
    odd = sorted(set(root) & _PATTERN_CHARACTERS)
    if odd:
        fault = f"has {' and '.join(odd)} in it, which DuckDB takes for a pattern"
    elif shown != root:
        fault = "is not UTF-8, and DuckDB takes no other"
    else:
        return root
    raise LakeMisplaced(f"the path of the lake, {shown}, {fault}: give it another name")
