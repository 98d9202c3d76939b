"""The only module that composes SQL; all other statements are constants or SQL files.

DuckDB takes parameters neither as names of schemas and views nor in the definition of a view.
``tests/test_structure.py`` rejects any other composed text that is executed.
"""

from collections.abc import Iterable
from pathlib import Path

from tonlake.lake.errors import LakeMisplaced


def join_scripts(scripts: Iterable[str]) -> str:
    """Join scripts, whose paths and names are quoted, into one: it runs in half the time."""
    return "\n".join(scripts)


def quote(text: str) -> str:
    """Return the text as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def quote_paths(root: str, paths: Iterable[str]) -> str:
    """Return paths below a folder as an SQL list."""
    return f"[{', '.join(quote(f'{root}/{path}') for path in paths)}]"


def quote_name(name: str) -> str:
    """Return the name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


_PATTERN_CHARACTERS = frozenset("*?[")


def name_root(lake_dir: Path) -> str:
    """Return the path of a lake's folder for statements that name its files."""
    return check_root(str(lake_dir.absolute()))


def check_root(root: str) -> str:
    """Return the path if DuckDB can take it: valid UTF-8, and no glob characters."""
    shown = root.encode(errors="surrogateescape").decode(errors="backslashreplace")
    odd = sorted(set(root) & _PATTERN_CHARACTERS)
    if odd:
        fault = f"contains {' and '.join(odd)}, which DuckDB takes for a pattern"
    elif shown != root:
        fault = "is not UTF-8, the only encoding that DuckDB accepts"
    else:
        return root
    raise LakeMisplaced(f"the path of the lake, {shown}, {fault}: give it another name")
