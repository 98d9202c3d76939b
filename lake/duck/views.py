"""Hands the lake over to other tools, as ``views.sql`` and as ``catalog.duckdb``.

Both hold a view per table, the macros, and a comment on every view and column. They work in DuckDB
1.5 and 2.x. The views follow commits: those of the files in the tables' folders count that
``_log/views.parquet`` lists, which each publication replaces (``follow_views``). It also says which
snapshot that is. A lake that moved is found from its folder, or by the variable ``lake``.

DuckDB looks the functions that a macro calls up in the schemas of the caller, so in an attached
catalogue each macro is free of calls to the others: ``tonlake.ton_friendly(…)`` would fail.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tonlake.lake.duck.connection import (
    DERIVED_VIEWS,
    FILE_OPTIONS,
    MACRO,
    VIEWED_TABLES,
    describe_derived,
    read_macros,
    read_sql,
    render_rows,
    select_all,
)
from tonlake.lake.duck.engine import DEFAULTS
from tonlake.lake.duck.labels import render_labels
from tonlake.lake.duck.limit import ended_by_interrupt
from tonlake.lake.duck.own import OWN_FOLDER, list_own_tables, render_own_views
from tonlake.lake.duck.part import cut_parts
from tonlake.lake.duck.statement import check_root, join_scripts, name_root, quote, quote_name
from tonlake.lake.errors import LakeError
from tonlake.lake.file.regular import read_regular
from tonlake.lake.file.rows import PARTITION
from tonlake.lake.log.disk import hold_lock, unfinished, write_file
from tonlake.lake.log.place import find_last_parquet
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import LOG_FOLDER, VIEWED_FILE, read_state
from tonlake.lake.schema import SCHEMA_VERSION, Table
from tonlake.lake.schema.column import Column
from tonlake.lake.schema.dictionary import REFERENCE_TABLES, VIEWS, View
from tonlake.lake.settings import LakeSettings

VIEWS_FILE = "views.sql"
CATALOG_FILE = "catalog.duckdb"
_LOCK_FILE = f"{LOG_FOLDER}/views"

_SEAL = re.compile(
    rb"-- SHA-256 of catalog\.duckdb: ([0-9a-f]{64})\n"
    rb"-- SHA-256 of the lines above: ([0-9a-f]{64})\n\Z"
)
_LAST_LINE_BYTES = len(b"-- SHA-256 of the lines above: \n") + 64
_AGAIN = "`tonlake views` rewrites it"


def find_changed(lake_dir: Path) -> Iterator[tuple[str, str]]:
    """Yield the hand-off files that are not as they were written, each with the reason."""
    views, catalog = _read(lake_dir / VIEWS_FILE), _read(lake_dir / CATALOG_FILE)
    listed = _read(lake_dir / VIEWED_FILE)
    if listed is not None and not _is_sound(lake_dir, listed):
        yield VIEWED_FILE, f"it is not the list of any commit; {_AGAIN}"
    if views is None and catalog is None:
        return
    seal = None if views is None else _SEAL.search(views)
    if views is None:
        yield VIEWS_FILE, f"it is missing, although {CATALOG_FILE} exists; {_AGAIN}"
    elif seal is None:
        yield VIEWS_FILE, f"it does not end with its digest; {_AGAIN}"
    elif _digest(views[:-_LAST_LINE_BYTES]) != seal[2].decode():
        yield VIEWS_FILE, f"its bytes do not match its digest; {_AGAIN}"
    elif catalog is None:
        yield CATALOG_FILE, f"it is missing, although {VIEWS_FILE} exists; {_AGAIN}"
    elif _digest(catalog) != seal[1].decode():
        yield CATALOG_FILE, f"its bytes do not match the digest in {VIEWS_FILE}; {_AGAIN}"


def _is_sound(lake_dir: Path, listed: bytes) -> bool:
    """Return whether a list of files is that of the commit that it names."""
    try:
        table = pq.read_table(pa.BufferReader(listed))
        marks = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
        state = read_state(lake_dir, table["commit"][0].as_py())
        return _render_list(Snapshot(lake_dir, state), marks) == listed
    except (OSError, LookupError, AttributeError, ValueError, LakeError, pa.ArrowException):
        return False


def _read(path: Path) -> bytes | None:
    """Return the bytes of a file; empty if it cannot be read, None if it does not exist."""
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None
    except OSError:
        return b""


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


_STORAGE_VERSION = "v1.0.0"
"""The oldest version, so that the DuckDB 1.5 command line can open the catalogue."""


def write_views(
    lake_dir: Path, root: str | None = None, settings: LakeSettings = DEFAULTS
) -> list[Path]:
    """Write ``views.sql``, ``catalog.duckdb`` and the list of files into the lake's folder.

    ``root`` is the path at which readers reach the lake, by default its absolute path here.
    """
    check_root(str(lake_dir.resolve()))  # DuckDB writes here
    if root is not None:
        check_root(root)
    for damage in open_snapshot(lake_dir).damaged.values():
        raise damage
    with hold_lock(lake_dir / _LOCK_FILE):
        return _write_views(open_snapshot(lake_dir, check_digests=False), root, settings)


def follow_views(lake_dir: Path, settings: LakeSettings) -> None:
    """Bring views that were once written up to the newest commit.

    Mostly that is a new list of files; a first row in a table, for one, changes the views, too.
    """
    if (lake_dir / VIEWED_FILE).exists():
        with hold_lock(lake_dir / _LOCK_FILE):
            snapshot = open_snapshot(lake_dir, check_digests=False)
            _write_views(snapshot, _read_marks(lake_dir).get(_ROOT), settings)


_ROOT, _LAKE = "root", "lake"


def _read_marks(lake_dir: Path) -> dict[str, str]:
    """Return what the list of files is marked with; nothing if it cannot be read."""
    with suppress(OSError, pa.ArrowInvalid):
        metadata = pq.read_schema((lake_dir / VIEWED_FILE).absolute()).metadata or {}
        return {key.decode(): value.decode() for key, value in metadata.items()}
    return {}


def _write_views(snapshot: Snapshot, root: str | None, settings: LakeSettings) -> list[Path]:
    """Write the list of files, and the views unless they are as they would be written."""
    lake_dir, here = snapshot.lake_dir, name_root(snapshot.lake_dir)
    # The views of one lake do not read another, whichever folder a variable names.
    lake = _read_marks(lake_dir).get(_LAKE, snapshot.state.digest)
    text = render_script(snapshot, here if root is None else root, lake, settings)
    views, catalog = lake_dir / VIEWS_FILE, lake_dir / CATALOG_FILE
    marks = {_LAKE: lake} | ({} if root is None else {_ROOT: root})
    write_file(lake_dir / VIEWED_FILE, _render_list(snapshot, marks), "views")
    if (_read(views) or b"").startswith(text.encode()) and not [*find_changed(lake_dir)]:
        return [views, catalog]
    try:
        with (
            unfinished(catalog.absolute()) as path,  # to DuckDB "~" and "s3:" are not local paths
            duckdb.connect(
                str(path), config={"storage_compatibility_version": _STORAGE_VERSION}
            ) as connection,
            ended_by_interrupt(connection),
        ):
            # Views are bound when they are created, and the root may be a path on another machine.
            connection.execute("set variable lake = $path", {"path": here})
            connection.begin()  # otherwise each of a thousand statements would wait for the disk
            connection.execute(text)
            connection.commit()
    except (duckdb.IOException, duckdb.TransactionException) as error:  # the latter by a commit
        path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
        raise OSError(f"{catalog} cannot be written: {error}; retry with tonlake views") from error
    sealed = f"{text}-- SHA-256 of catalog.duckdb: {_digest(read_regular(catalog))}\n".encode()
    with unfinished(views) as path:
        path.write_bytes(sealed + f"-- SHA-256 of the lines above: {_digest(sealed)}\n".encode())
    return [views, catalog]


def _render_list(snapshot: Snapshot, marks: dict[str, str]) -> bytes:
    """Return the list of the files that the views read, each with the folder of its table."""
    rows = [(file.table, file.path) for file in snapshot.state.files if not file.pack]
    for table, state in list_own_tables(snapshot.lake_dir):
        rows += [(f"{OWN_FOLDER}/{table.name}", part.path) for part in state.parts.values()]
    last = find_last_parquet(snapshot.state)
    columns = {
        "folder": pa.array([folder for folder, _path in rows], pa.string()),
        "path": pa.array([path for _folder, path in rows], pa.string()),
        "lake": pa.repeat(marks[_LAKE], len(rows)),
        "commit": pa.repeat(pa.scalar(snapshot.number, pa.int64()), len(rows)),
        "mc_seqno": pa.repeat(pa.scalar(last, pa.int64()), len(rows)),
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, metadata=marks), sink)
    return bytes(sink.getvalue())


_SNAPSHOT = View(
    "lake_snapshot",
    "The snapshot that all views show.",
    (
        Column("commit", "int64", "Number of the commit"),
        Column("mc_seqno", "int64", "Last masterchain block in it"),
    ),
)


def render_script(
    snapshot: Snapshot, root: str, lake: str, settings: LakeSettings = DEFAULTS
) -> str:
    """Return the SQL script that creates every view and macro of the lake at ``root``."""
    place = read_sql("lake_files").format(root=quote(root), lake=quote(lake))
    parts = [place, read_flat_macros(), render_labels(settings), _render_view_comments(_SNAPSHOT)]
    parts += [
        _render_comments(table.name, table.doc, table.columns, "table")
        for table in REFERENCE_TABLES
    ]
    parts += [
        f"create or replace view {quote_name(view)} as\n"
        f"{_render_table(table, snapshot)};\n" + _render_comments(view, table.doc, table.shown)
        for view, table in VIEWED_TABLES.items()
    ]
    parts += [
        read_sql(name) + _render_comments(name, *describe_derived(name)) for name in DERIVED_VIEWS
    ]
    parts += [cut_parts(read_sql(name)) + _render_view_comments(VIEWS[name]) for name in VIEWS]
    parts += render_own_views(list_own_tables(snapshot.lake_dir), _read_own)
    return join_scripts(parts)


def _render_table(table: Table, snapshot: Snapshot) -> str:
    """Return the SQL of a table's rows; columns newer than a file are NULL."""
    empty = render_rows(table, (), lambda _name, _paths: "")
    versions = {file.schema_version for file in snapshot.files[table.name] if not file.pack}
    if not versions:
        return empty
    if versions == {SCHEMA_VERSION}:
        return _read_folder(table.name, FILE_OPTIONS, select_all(table))
    names = ", ".join(quote_name(column.name) for column in table.shown)
    rows = _read_folder(table.name, f"{FILE_OPTIONS}, union_by_name = true", select_all(table))
    return f"select {names}\nfrom (\n{empty}\nunion all by name\n{rows}\n)"


def _read_own(name: str, _paths: list[str]) -> str:
    return f"({_read_folder(f'{OWN_FOLDER}/{name}', 'hive_partitioning = false')})"


def _read_folder(folder: str, options: str, select: str = "select *") -> str:
    files = quote(f"{folder}/{PARTITION}=*/*.parquet")
    return (
        f"{select.replace('*', '* exclude (filename)', 1)}\n"
        f"from read_parquet(lake_path({files}), filename = true, {options})\n"
        f"semi join live_files({quote(folder)}) using (filename)"
    )


def _render_view_comments(view: View) -> str:
    if view.parameters:
        return f"comment on macro table {quote_name(view.name)} is {quote(view.doc)};\n"
    return _render_comments(view.name, view.doc, view.columns)


def _render_comments(name: str, doc: str, columns: Iterable[Column], kind: str = "view") -> str:
    lines = [f"comment on {kind} {quote_name(name)} is {quote(doc)};"]
    lines += [
        f"comment on column {quote_name(name)}.{quote_name(column.name)} is {quote(column.doc)};"
        for column in columns
    ]
    return "\n".join(lines) + "\n"


_DEFAULT = re.compile(r"\s*:=.*")

Node = Any
"""A part of a parsed statement, as DuckDB's JSON."""


@cache
def read_flat_macros() -> str:
    """Return the statements that create every macro, with calls of scalar ones replaced."""
    known: dict[str, tuple[list[str], Node]] = {}
    with duckdb.connect() as connection:

        def flatten(match: re.Match[str]) -> str:
            name, parameters, table, body = match.groups()
            start = "" if table else "select "
            text = connection.execute("select json_serialize_sql($1)", [start + body]).fetchall()
            tree = json.loads(text[0][0])
            flat = _replace_calls(tree, known)
            if not table:
                names = [_DEFAULT.sub("", part).strip() for part in parameters.split(",")]
                known[name] = names, flat["statements"][0]["node"]["select_list"][0]
            if flat == tree:
                return match[0]
            written = connection.execute("select json_deserialize_sql($1)", [json.dumps(flat)])
            body = written.fetchall()[0][0].removeprefix("SELECT " if not table else "")
            return f"create or replace macro {name}({parameters}) as{table or ''}\n{body};\n"

        return MACRO.sub(flatten, read_macros())


def _replace_calls(tree: Node, known: dict[str, tuple[list[str], Node]]) -> Node:
    """Return a tree in which no macro of ``known`` is called."""

    def expand(node: Node) -> Node:
        if node.get("class") != "FUNCTION" or node["function_name"] not in known:
            return node
        names, body = known[node["function_name"]]
        given = [argument["expression"] for argument in node["arguments"]]
        values = {(name,): value for name, value in zip(names, given, strict=True)}
        filled = _rebuild(body, lambda part: values.get(tuple(part.get("column_names", ())), part))
        return filled | {"alias": node["alias"]}

    return _rebuild(tree, expand)


def _rebuild(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a tree with each object as ``change`` returns it, those within it first."""
    if isinstance(node, list):
        return [_rebuild(part, change) for part in node]
    if not isinstance(node, dict):
        return node
    return change({key: _rebuild(part, change) for key, part in node.items()})
