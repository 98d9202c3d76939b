"""User-defined tables: their definitions, and the state of each.

``_tables/definitions.json`` has all definitions, ``_tables/<name>/state.json`` the files of a
table, each with a digest of the input that it was computed from. Both are replaced as a whole.
They are not part of the log: a table is always read as of its last refresh.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from tonlake.lake.errors import TableInvalid
from tonlake.lake.log.disk import make_folder, write_file
from tonlake.lake.log.envelope import encode_entry, read_body

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

OWN_FOLDER = "_tables"
DEFINITIONS_FILE = f"{OWN_FOLDER}/definitions.json"
OWN_LOCK = f"{OWN_FOLDER}/lock"
"""Held while definitions or tables are changed."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")

Per = Literal["day", "commit"]


class OwnTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A definition: ``sql`` is run over the rows of each UTC day, or of each commit, separately."""

    name: str
    sql: str
    per: Per


class OwnTables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All definitions of a lake, by name."""

    tables: tuple[OwnTable, ...] = ()


class OwnColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column and its DuckDB type."""

    name: str
    type: str


class OwnPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file: its UTC day, the digest of its input, and the digest of its bytes."""

    day: str
    inputs: str
    path: str
    rows: int
    bytes: int
    sha256: str


class OwnState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The files of a table; they have all rows up to ``commit``.

    ``error`` is why the last refresh failed, at commit ``failed``; the files are then those of the
    refresh before.
    """

    commit: int = 0
    columns: tuple[OwnColumn, ...] = ()
    parts: dict[str, OwnPart] = {}
    error: str | None = None
    failed: int = 0

    @property
    def rows(self) -> int:
        """Rows in all files."""
        return sum(part.rows for part in self.parts.values())


def check_name(name: str, taken: Iterable[str]) -> None:
    """Check the name of a new table.

    Raises:
        TableInvalid: the name is malformed, or another table, view or macro has it.
    """
    if not _NAME.fullmatch(name):
        raise TableInvalid(
            f"{name[:80]!r} is not a table name: use at most 63 small letters, digits and _"
        )
    if name in taken:
        raise TableInvalid(f"the lake already has a table {name}: choose another name")


def read_definitions(lake_dir: Path) -> dict[str, OwnTable]:
    """Return the definitions of a lake by name; empty if there are none.

    Raises:
        LakeCorrupt: they are damaged.
    """
    if not (lake_dir / DEFINITIONS_FILE).is_file():
        return {}
    found = read_body(lake_dir, DEFINITIONS_FILE, OwnTables)[0]
    return {table.name: table for table in found.tables}


def write_definitions(lake_dir: Path, tables: Iterable[OwnTable]) -> None:
    """Replace the definitions of a lake; the caller holds the lock.

    Raises:
        LakeFull: no room.
    """
    make_folder(lake_dir / OWN_FOLDER)
    ordered = tuple(sorted(tables, key=lambda table: table.name))
    write_file(lake_dir / DEFINITIONS_FILE, encode_entry(OwnTables(ordered))[0], "file")


def read_own_state(lake_dir: Path, name: str) -> OwnState:
    """Return the state of a table; an empty one before its first refresh.

    Raises:
        LakeCorrupt: the state file is damaged.
    """
    file = name_state(name)
    if not (lake_dir / file).is_file():
        return OwnState()
    return read_body(lake_dir, file, OwnState)[0]


def write_own_state(lake_dir: Path, name: str, state: OwnState) -> None:
    """Replace the state of a table; the caller holds the lock.

    Raises:
        LakeFull: no room.
    """
    make_folder(lake_dir / OWN_FOLDER / name)
    write_file(lake_dir / name_state(name), encode_entry(state)[0], "file")


def name_state(name: str) -> str:
    """Return the path of a table's state file."""
    return f"{OWN_FOLDER}/{name}/state.json"
