"""Exports one snapshot to other tools, as ``views.sql`` and as ``catalog.duckdb``.

Both hold a view per table over the snapshot's files, the macros, and a comment on every view and
column. They work in DuckDB 1.5 and 2.x. The variable ``lake`` names the folder of the lake, if it
has moved since they were written: ``set variable lake = '/elsewhere/my.lake'``.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb

from tonlake.lake.duck.connection import (
    DERIVED_VIEWS,
    VIEWED_TABLES,
    read_macros,
    read_sql,
    render_view,
)
from tonlake.lake.duck.engine import DEFAULTS
from tonlake.lake.duck.labels import render_labels
from tonlake.lake.duck.own import list_own_tables, render_own_views, render_reading
from tonlake.lake.duck.statement import check_root, join_scripts, name_root, quote, quote_name
from tonlake.lake.file.regular import read_regular
from tonlake.lake.file.rows import PARTITION
from tonlake.lake.log.disk import unfinished
from tonlake.lake.log.place import find_last_parquet
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema.column import Column
from tonlake.lake.schema.view import REFERENCE_TABLES
from tonlake.lake.schema.view_catalogue import VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.schema.view import View
    from tonlake.lake.settings import LakeSettings

VIEWS_FILE = "views.sql"
CATALOG_FILE = "catalog.duckdb"

_SEAL = re.compile(
    rb"-- SHA-256 of catalog\.duckdb: ([0-9a-f]{64})\n"
    rb"-- SHA-256 of the lines above: ([0-9a-f]{64})\n\Z"
)
_LAST_LINE_BYTES = len(b"-- SHA-256 of the lines above: \n") + 64
_AGAIN = "`tonlake views` rewrites it"


def seal_script(text: str, catalog: Path) -> bytes:
    """Return the bytes of ``views.sql``: the script, then the digests of catalogue and script."""
    sealed = f"{text}-- SHA-256 of catalog.duckdb: {_digest(read_regular(catalog))}\n".encode()
    return sealed + f"-- SHA-256 of the lines above: {_digest(sealed)}\n".encode()


def find_changed(lake_dir: Path) -> Iterator[tuple[str, str]]:
    """Yield the hand-off files that are not as they were written, each with the reason."""
    views, catalog = _read(lake_dir / VIEWS_FILE), _read(lake_dir / CATALOG_FILE)
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

_DAY = Column(PARTITION, "date", "UTC day of the masterchain block, from the folder's name")


def write_views(
    lake_dir: Path, root: str | None = None, settings: LakeSettings = DEFAULTS
) -> list[Path]:
    """Write ``views.sql`` and ``catalog.duckdb`` of the newest snapshot into the lake's folder.

    ``root`` is the path at which readers reach the lake, by default its absolute path here.
    """
    here = name_root(lake_dir)
    check_root(str(lake_dir.resolve()))  # DuckDB writes here
    root = here if root is None else check_root(root)
    snapshot = open_snapshot(lake_dir)
    for damage in snapshot.damaged.values():
        raise damage
    text = render_script(snapshot, root, settings)
    views, catalog = lake_dir / VIEWS_FILE, lake_dir / CATALOG_FILE
    with (
        _failing_as_system(catalog),
        unfinished(catalog.absolute()) as path,  # to DuckDB "~" and "s3:" are not local paths
        duckdb.connect(
            str(path), config={"storage_compatibility_version": _STORAGE_VERSION}
        ) as connection,
    ):
        # Views are bound when they are created, and the root may be a path on another machine.
        connection.execute("set variable lake = $path", {"path": here})
        connection.begin()  # otherwise each of a thousand statements would wait for the disk
        connection.execute(text)
        connection.commit()
    with unfinished(views) as path:
        path.write_bytes(seal_script(text, catalog))
    return [views, catalog]


@contextmanager
def _failing_as_system(file: Path) -> Iterator[None]:
    """Raise DuckDB's errors about writing a file as OSError."""
    try:
        yield
    except duckdb.IOException as error:
        raise OSError(f"{file} cannot be written: {error}") from error


def render_script(snapshot: Snapshot, root: str, settings: LakeSettings = DEFAULTS) -> str:
    """Return the SQL script that creates every view and macro of the snapshot."""
    head = (
        f"-- Commit {snapshot.number} of a tonlake lake as views, for DuckDB 1.5 and 2.x:\n"
        f"-- the rows up to masterchain block {find_last_parquet(snapshot.state)}.\n"
        "-- If the lake has moved, first: set variable lake = '<its folder>';\n"
    )
    place = (
        "create or replace macro lake_files(paths) as\n"
        "    list_transform(\n"
        "        paths,\n"
        f"        lambda path: coalesce(getvariable('lake'), {quote(root)}) || '/' || path\n"
        "    );\n"
    )
    parts = [head, read_macros(), place, render_labels(settings)]
    parts += [
        _render_comments(table.name, table.doc, table.columns, "table")
        for table in REFERENCE_TABLES
    ]
    parts += [
        render_view(table, snapshot.files[table.name], _show_paths)
        + _render_comments(view, table.doc, (*table.columns, _DAY))
        for view, table in VIEWED_TABLES.items()
    ]
    parts += [_render_derived(name) for name in DERIVED_VIEWS]
    parts += [read_sql(view.name) + _render_view_comments(view) for view in VIEWS.values()]
    parts += render_own_views(list_own_tables(snapshot.lake_dir), _read_files)
    return join_scripts(parts)


def _show_paths(_name: str, paths: list[str]) -> str:
    listed = ",\n".join(f"        {quote(path)}" for path in paths)
    return f"lake_files([\n{listed}\n    ])"


def _read_files(name: str, paths: list[str]) -> str:
    return render_reading(_show_paths(name, paths))


def _render_derived(name: str) -> str:
    text = read_sql(name)
    doc = " ".join(
        line.removeprefix("--").strip() for line in text.splitlines() if line.startswith("--")
    )
    columns = (*VIEWED_TABLES[DERIVED_VIEWS[name][0]].columns, _DAY)
    return f"{text}{_render_comments(name, doc, columns)}"


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
