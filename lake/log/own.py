"""Tables that a person adds to a lake: their definitions, and what of them is up to date.

``_tables/definitions.json`` has all definitions, ``_tables/<name>/state.json`` which files hold the
rows of a table, each with a digest of the input that it follows from. Both are replaced as a
whole. They are no part of the log: a table is read as it was brought up to date last.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from tonlake.lake.errors import TableInvalid
from tonlake.lake.log.disk import hold_lock, make_folder, write_file
from tonlake.lake.log.envelope import encode_entry, read_body

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

OWN_FOLDER = "_tables"
DEFINITIONS_FILE = f"{OWN_FOLDER}/definitions.json"
OWN_LOCK = f"{OWN_FOLDER}/lock"
"""Held by who changes definitions or tables."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")

Per = Literal["day", "commit"]


class OwnTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A definition: the rows of ``sql``, asked of the rows of each UTC day or commit alone."""

    name: str
    sql: str
    per: Per


class OwnTables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All definitions of a lake, by name."""

    tables: tuple[OwnTable, ...] = ()


class OwnColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column, and its type in DuckDB."""

    name: str
    type: str


class OwnPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file: of which day and blocks, from which input, and the digest of its bytes."""

    day: str
    inputs: str
    path: str
    rows: int
    bytes: int
    sha256: str


class OwnState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which files a table has; ``commit`` is the one up to which they have all rows.

    ``error`` says why the last refresh failed; the files are then those of before. ``failed`` is
    the commit at which it did.
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
    """Refuse a name that is none, or that another table, view or macro has.

    Raises:
        TableInvalid: it is refused.
    """
    if not _NAME.fullmatch(name):
        raise TableInvalid(
            f"{name[:80]!r} is no name of a table: small letters, digits and _, at most 63"
        )
    if name in taken:
        raise TableInvalid(f"the lake has a table {name} already: choose another name")


def read_definitions(lake_dir: Path) -> dict[str, OwnTable]:
    """Return the definitions of a lake by name; none where none was added.

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


def adopt_definitions(lake_dir: Path, tables: Iterable[OwnTable]) -> None:
    """Add definitions out of another lake, but for names that this one has.

    Their rows come with the next refresh.

    Raises:
        TableInvalid: one has a name that is none.
        LakeFull: no room.
    """
    make_folder(lake_dir / OWN_FOLDER)
    with hold_lock(lake_dir / OWN_LOCK):
        known = read_definitions(lake_dir)
        fresh = [table for table in tables if table.name not in known]
        for table in fresh:
            check_name(table.name, ())
        if fresh:
            write_definitions(lake_dir, [*known.values(), *fresh])


def read_own_state(lake_dir: Path, name: str) -> OwnState:
    """Return what a table has; nothing before its first refresh.

    Raises:
        LakeCorrupt: the file that says so is damaged.
    """
    file = name_state(name)
    if not (lake_dir / file).is_file():
        return OwnState()
    return read_body(lake_dir, file, OwnState)[0]


def write_own_state(lake_dir: Path, name: str, state: OwnState) -> None:
    """Replace what a table has; the caller holds the lock.

    Raises:
        LakeFull: no room.
    """
    make_folder(lake_dir / OWN_FOLDER / name)
    write_file(lake_dir / name_state(name), encode_entry(state)[0], "file")


def name_state(name: str) -> str:
    """Return the file that says what a table has."""
    return f"{OWN_FOLDER}/{name}/state.json"
