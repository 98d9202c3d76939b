"""Views over user-defined tables, and queries of one of them."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
import pyarrow as pa

from tonlake.lake.duck.engine import begin_database, lock_database
from tonlake.lake.duck.limit import WATCH
from tonlake.lake.duck.statement import join_scripts, name_root, quote_name, quote_paths
from tonlake.lake.duck.tree import WORD
from tonlake.lake.errors import QueryError, TableInvalid
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.disk import make_folder, write_file
from tonlake.lake.log.envelope import encode_entry, read_body
from tonlake.lake.log.state import DataFile
from tonlake.lake.schema import SCHEMA_VERSION
from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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
    """The files of a table as of ``commit``, and the error of the refresh at ``failed``."""

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
    """Check the name of a new table."""
    if not _NAME.fullmatch(name):
        raise TableInvalid(
            f"{name[:80]!r} is not a table name: use at most 63 small letters, digits and _"
        )
    if name in taken:
        raise TableInvalid(f"the lake already has a table {name}: choose another name")


def read_definitions(lake_dir: Path) -> dict[str, OwnTable]:
    """Return the definitions of a lake by name; empty if there are none."""
    if not (lake_dir / DEFINITIONS_FILE).is_file():
        return {}
    found = read_body(lake_dir, DEFINITIONS_FILE, OwnTables)[0]
    return {table.name: table for table in found.tables}


def write_definitions(lake_dir: Path, tables: Iterable[OwnTable]) -> None:
    """Replace the definitions of a lake; the caller holds the lock."""
    make_folder(lake_dir / OWN_FOLDER)
    ordered = tuple(sorted(tables, key=lambda table: table.name))
    write_file(lake_dir / DEFINITIONS_FILE, encode_entry(OwnTables(ordered))[0], "file")


def read_own_state(lake_dir: Path, name: str) -> OwnState:
    """Return the state of a table; an empty one before its first refresh."""
    has_state = (lake_dir / name_state(name)).is_file()
    return read_body(lake_dir, name_state(name), OwnState)[0] if has_state else OwnState()


def write_own_state(lake_dir: Path, name: str, state: OwnState) -> None:
    """Replace the state of a table; the caller holds the lock."""
    make_folder(lake_dir / OWN_FOLDER / name)
    write_file(lake_dir / name_state(name), encode_entry(state)[0], "file")


def name_state(name: str) -> str:
    """Return the path of a table's state file."""
    return f"{OWN_FOLDER}/{name}/state.json"


COMPARISONS = {"": "=", "ne": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
"""Comparison operators by the suffix of a request parameter."""


class TableFilter(NamedTuple):
    """Compares a column with a value, which is cast to the column's type; see ``COMPARISONS``."""

    column: str
    comparison: str
    value: str


def describe_own_tables(lake_dir: Path) -> list[dict[str, object]]:
    """Return the user-defined tables for JSON: definition, columns, rows, commit, error."""
    described = []
    for table in read_definitions(lake_dir).values():
        state = read_own_state(lake_dir, table.name)
        shown = {name: getattr(state, name) for name in ("columns", "rows", "commit", "error")}
        described.append(msgspec.structs.asdict(table) | shown)
    return described


def list_own_tables(
    lake_dir: Path, statement: str | None = None
) -> list[tuple[OwnTable, OwnState]]:
    """Return the user-defined tables that have rows, all or those that a statement may name."""
    known = read_definitions(lake_dir)
    named = known if statement is None else known.keys() & WORD.findall(statement.lower())
    found = [(known[name], read_own_state(lake_dir, name)) for name in known if name in named]
    return [(table, state) for table, state in found if state.parts]


def render_own_views(
    tables: Iterable[tuple[OwnTable, OwnState]], read_files: Callable[[str, list[str]], str]
) -> Iterator[str]:
    """Yield the SQL of a view for each table."""
    for table, state in tables:
        paths = [part.path for part in state.parts.values()]
        columns = ",\n".join(
            f"    {quote_name(column.name)}::{column.type} as {quote_name(column.name)}"
            for column in state.columns
        )
        yield (
            f"create or replace view {quote_name(table.name)} as\nselect\n{columns}\n"
            f"from {read_files(table.name, paths)};\n"
        )


def add_own_views(
    connection: "DuckDBPyConnection", lake_dir: Path, settings: LakeSettings, statement: str | None
) -> None:
    """Create the views of user-defined tables on a connection that may read the lake's folder."""
    root = name_root(lake_dir)

    def read_files(_name: str, paths: list[str]) -> str:
        return f"read_parquet({quote_paths(root, paths)}, hive_partitioning = false)"

    tables = list_own_tables(lake_dir, statement)
    if settings.check_digests:
        for damage in find_damage(lake_dir, list_own_files(tables), trust_earlier=True):
            raise damage
    connection.execute(join_scripts(render_own_views(tables, read_files)))


def list_own_files(tables: Iterable[tuple[OwnTable, OwnState]]) -> list[DataFile]:
    """Return the files of user-defined tables as the DataFile structs of the lake's tables."""
    return [
        DataFile(part.path, table.name, part.rows, part.bytes, part.sha256, SCHEMA_VERSION)
        for table, state in tables
        for part in state.parts.values()
    ]


def own_folder(lake_dir: Path) -> str:
    """Return the folder of all user-defined tables, as DuckDB is allowed to read it."""
    return f"{name_root(lake_dir)}/{OWN_FOLDER}/"


def ask_table(
    lake_dir: Path,
    settings: LakeSettings,
    name: str,
    state: OwnState,
    filters: Iterable[TableFilter],
    order: Iterable[tuple[str, bool]],
    page: tuple[int, int],
    limit_s: float = inf,
) -> pa.Table:
    """Return rows of a user-defined table by limit and offset; ties are broken by all columns.

    Raises QueryError, and duckdb.InterruptException after ``limit_s``.
    """
    import duckdb  # noqa: PLC0415 - most that import this module need no DuckDB

    if not state.parts:
        return pa.table({column.name: pa.array([], pa.string()) for column in state.columns})
    types = {column.name: column.type for column in state.columns}
    values: dict[str, object] = {"limit": page[0], "offset": page[1]}
    conditions = ["true"]
    for at, each in enumerate(filters):
        kind, value = types[each.column], f"$value_{at}"
        values[value[1:]] = each.value
        cast = f"unhex({value})" if kind == "BLOB" else f"{value}::{kind}"
        conditions.append(f"{quote_name(each.column)} {each.comparison} {cast}")
    ordered = [f"{quote_name(column)}{' desc' if down else ''}" for column, down in order]
    ordered += [quote_name(column) for column in types]
    text = (
        f"from {quote_name(name)}\nwhere {' and '.join(conditions)}\n"
        f"order by {', '.join(ordered)}\nlimit $limit offset $offset\n"
    )
    with closing(begin_database(settings)) as connection:
        add_own_views(connection, lake_dir, settings, name)
        lock_database(connection, own_folder(lake_dir))
        try:
            with WATCH.limit(connection.interrupt, limit_s):
                return connection.sql(join_scripts([text]), params=values).to_arrow_table()
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise QueryError(str(error).strip()) from error
