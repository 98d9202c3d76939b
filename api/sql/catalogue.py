"""What a statement may name: every view of the lake with its columns."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from tonlake.lake.duck.connection import DERIVED_VIEWS, PARTITION, VIEW_NAMES, read_sql
from tonlake.lake.duck.own import list_own_tables
from tonlake.lake.schema import TABLES
from tonlake.lake.schema.view import REFERENCE_TABLES
from tonlake.lake.schema.view_catalogue import VIEWS

if TYPE_CHECKING:
    from pathlib import Path


class Column(msgspec.Struct, frozen=True):
    """A column of a view, as people look it up."""

    name: str
    type: str
    doc: str


class View(msgspec.Struct, frozen=True):
    """What stands behind ``from``: its name, what its rows are, and its columns."""

    name: str
    doc: str
    columns: tuple[Column, ...]


@cache
def list_views() -> tuple[View, ...]:
    """Return every view with its columns."""
    views = [
        View(
            VIEW_NAMES.get(table.name, table.name),
            table.doc,
            (
                *(Column(each.name, each.type, each.doc) for each in table.columns),
                Column(PARTITION, "date", "UTC day of the masterchain block"),
            ),
        )
        for table in TABLES.values()
    ]
    views += [View(name, _read_doc(name), ()) for name in DERIVED_VIEWS]
    views += [
        View(
            view.title,
            view.doc,
            tuple(Column(each.name, each.type, each.doc) for each in view.columns),
        )
        for view in (*REFERENCE_TABLES, *VIEWS.values())
    ]
    return tuple(sorted(views, key=lambda view: view.name))


def list_own_views(lake_dir: Path) -> list[View]:
    """Return the tables that a person added, with their columns."""
    return [
        View(
            table.name,
            f"Own table, per {table.per}, up to commit {state.commit}",
            tuple(Column(each.name, each.type, "") for each in state.columns),
        )
        for table, state in list_own_tables(lake_dir)
    ]


def _read_doc(name: str) -> str:
    lines = (line for line in read_sql(name).splitlines() if line.startswith("--"))
    return " ".join(line.removeprefix("--").strip() for line in lines)
