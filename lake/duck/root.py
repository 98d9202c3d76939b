"""The path of a lake's folder in DuckDB statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.lake.errors import LakeMisplaced

if TYPE_CHECKING:
    from pathlib import Path

_PATTERN_CHARACTERS = frozenset("*?[")


def name_root(lake_dir: Path) -> str:
    """Return the path of a lake's folder for statements that name its files.

    Raises:
        LakeMisplaced: DuckDB cannot take the path.
    """
    return check_root(str(lake_dir.absolute()))


def check_root(root: str) -> str:
    """Return the path if DuckDB can take it: valid UTF-8, and no glob characters.

    Raises:
        LakeMisplaced: it cannot; a glob pattern might match files of another lake.
    """
    shown = root.encode(errors="surrogateescape").decode(errors="backslashreplace")
    odd = sorted(set(root) & _PATTERN_CHARACTERS)
    if odd:
        fault = f"contains {' and '.join(odd)}, which DuckDB takes for a pattern"
    elif shown != root:
        fault = "is not UTF-8, the only encoding that DuckDB accepts"
    else:
        return root
    raise LakeMisplaced(f"the path of the lake, {shown}, {fault}: give it another name")
