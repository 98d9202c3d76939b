"""Hand-off to other tools: one snapshot as ``views.sql`` and as ``catalog.duckdb``.

Both hold a view per table over the snapshot's files, the macros, and a comment on every view and
column. They work in DuckDB 1.5 and 2.x. The variable ``lake`` names the folder of the lake, if it
has moved since they were written: ``set variable lake = '/elsewhere/my.lake'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from tonlake.lake.duck.connection import (
    DERIVED_VIEWS,
    PARTITION,
    VIEWED_TABLES,
    check_root,
    name_root,
    read_macros,
    read_sql,
    render_view,
)
from tonlake.lake.duck.seal import CATALOG_FILE, VIEWS_FILE, seal_script
from tonlake.lake.duck.statement import join_scripts, quote, quote_name
from tonlake.lake.log.disk import unfinished
from tonlake.lake.log.snapshot import open_snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.schema import Table

_STORAGE_VERSION = "v1.0.0"
"""The oldest one, so that the 1.5 command line opens the catalogue as well."""

_PARTITION_DOC = "UTC day of the masterchain block, from the folder's name"


def write_views(lake_dir: Path, root: str | None = None) -> list[Path]:
    """Write ``views.sql`` and ``catalog.duckdb`` of the newest snapshot into the lake's folder.

    ``root`` is the path by which readers reach the lake, by default its absolute path here.

    Raises:
        LakeError: there is no lake, a file of it is damaged, or DuckDB cannot take its path.
    """
    here = name_root(lake_dir)
    check_root(str(lake_dir.resolve()))  # where DuckDB writes
    root = here if root is None else check_root(root)
    snapshot = open_snapshot(lake_dir)
    for damage in snapshot.damaged.values():
        raise damage
    text = render_script(snapshot, root)
    views, catalog = lake_dir / VIEWS_FILE, lake_dir / CATALOG_FILE
    with (
        unfinished(catalog.absolute()) as path,  # DuckDB takes "~" and "s3:" for other places
        duckdb.connect(
            str(path), config={"storage_compatibility_version": _STORAGE_VERSION}
        ) as connection,
    ):
        # Views are bound as they are made, and the root may be a path that is not of here.
        connection.execute("set variable lake = $path", {"path": here})
        connection.begin()  # each of a thousand statements would wait for the disk
        connection.execute(text)
        connection.commit()
    with unfinished(views) as path:
        path.write_bytes(seal_script(text, catalog))
    return [views, catalog]


def render_script(snapshot: Snapshot, root: str) -> str:
    """Return the SQL text that makes every view and macro of the snapshot."""
    head = (
        f"-- Commit {snapshot.number} of a tonlake: its tables as views, for DuckDB 1.5 and 2.x.\n"
        "-- If the lake has moved, first: set variable lake = '<its folder>';\n"
    )
    place = (
        "create or replace macro lake_files(paths) as\n"
        "    list_transform(\n"
        "        paths,\n"
        f"        lambda path: coalesce(getvariable('lake'), {quote(root)}) || '/' || path\n"
        "    );\n"
    )
    parts = [head, read_macros(), place]
    parts += [
        render_view(table, snapshot.files[table.name], _show_paths)
        + _render_comments(view, table.doc, table)
        for view, table in VIEWED_TABLES.items()
    ]
    parts += [_render_derived(name) for name in DERIVED_VIEWS]
    return join_scripts(parts)


def _show_paths(_name: str, paths: list[str]) -> str:
    listed = ",\n".join(f"        {quote(path)}" for path in paths)
    return f"lake_files([\n{listed}\n    ])"


def _render_derived(name: str) -> str:
    text = read_sql(name)
    doc = " ".join(
        line.removeprefix("--").strip() for line in text.splitlines() if line.startswith("--")
    )
    return f"{text}{_render_comments(name, doc, VIEWED_TABLES[DERIVED_VIEWS[name][0]])}"


def _render_comments(view: str, doc: str, table: Table) -> str:
    docs = {column.name: column.doc for column in table.columns} | {PARTITION: _PARTITION_DOC}
    lines = [f"comment on view {quote_name(view)} is {quote(doc)};"]
    lines += [
        f"comment on column {quote_name(view)}.{quote_name(name)} is {quote(text)};"
        for name, text in docs.items()
    ]
    return "\n".join(lines) + "\n"
