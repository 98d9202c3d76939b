"""Lists the tables, views and macros that a statement may use, with their comments."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from tonlake.lake.duck.connection import (
    DERIVED_VIEWS,
    PARTITION,
    VIEWED_TABLES,
    read_macros,
    read_sql,
)
from tonlake.lake.duck.own import list_own_tables
from tonlake.lake.schema.view import REFERENCE_TABLES
from tonlake.lake.schema.view_catalogue import VIEWS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_COMMENT = re.compile(r"^comment on column \w+\.(\w+) is\s+'((?:[^']|'')*)'", re.MULTILINE)
_MACRO = re.compile(r"^create or replace macro (ton_\w+)\(([^)]*)\)", re.MULTILINE)
_MACROS = {
    "ton_account": "Account id of an address in raw or friendly form",
    "ton_action_words": "Result code of the action phase in words",
    "ton_address": "Raw address: workchain, colon, 64 hex digits",
    "ton_base64": "Hash as base64",
    "ton_base64url": "Hash as base64url",
    "ton_coins": "Nanoton as TON, an exact decimal",
    "ton_exit_words": "Exit code of the compute phase in words",
    "ton_friendly": "User-friendly address",
    "ton_hash": "32 bytes of a hash in hex, base64 or base64url",
    "ton_opcode": "Opcode as 0x and eight hex digits",
    "ton_scaled": "Amount by its decimals, to nine places",
    "ton_shard": "Shard as 16 hex digits",
    "ton_time": "Unix seconds as a UTC timestamp",
    "ton_workchain": "Workchain of an address in raw or friendly form",
}
"""Public macros; the others are parts of these."""


class Column(msgspec.Struct, frozen=True):
    """A column of a view; ``type`` is "" for columns that the view computes."""

    name: str
    type: str
    doc: str


class View(msgspec.Struct, frozen=True):
    """A table, view or table macro; ``title`` includes the parameters of a macro."""

    name: str
    title: str
    doc: str
    columns: tuple[Column, ...]


class Macro(msgspec.Struct, frozen=True):
    """A scalar macro: its arguments and what it returns."""

    name: str
    arguments: str
    doc: str


_DAY = Column(PARTITION, "date", "UTC day of the masterchain block")


@cache
def list_views() -> Mapping[str, tuple[View, ...]]:
    """Return the readable views, and the tables with the views over them, each sorted by name."""
    tables = [
        View(
            name,
            name,
            table.doc,
            (*(Column(each.name, each.type, each.doc) for each in table.columns), _DAY),
        )
        for name, table in VIEWED_TABLES.items()
    ]
    tables += [_describe_derived(name) for name in DERIVED_VIEWS]
    people = [
        View(
            view.name,
            view.title,
            view.doc,
            tuple(Column(each.name, each.type, each.doc) for each in view.columns),
        )
        for view in (*REFERENCE_TABLES, *VIEWS.values())
    ]
    groups = {"Views for people": people, "Tables": tables}
    return {
        heading: tuple(sorted(group, key=lambda view: view.name))
        for heading, group in groups.items()
    }


def list_own_views(lake_dir: Path) -> tuple[View, ...]:
    """Return the user-defined tables of a lake, with their columns."""
    return tuple(
        View(
            table.name,
            table.name,
            f"User-defined table, per {table.per}, up to commit {state.commit}",
            tuple(Column(each.name, each.type, "") for each in state.columns),
        )
        for table, state in list_own_tables(lake_dir)
    )


def _describe_derived(name: str) -> View:
    """Describe a view over a table: the table's columns and those with a column comment."""
    text = read_sql(name)
    doc = " ".join(line[2:].strip() for line in text.splitlines() if line.startswith("--"))
    base = VIEWED_TABLES[DERIVED_VIEWS[name][0]]
    columns = {each.name: Column(each.name, each.type, each.doc) for each in base.columns}
    added = {found[1]: Column(found[1], "", found[2]) for found in _COMMENT.finditer(text)}
    return View(name, name, doc, (*(columns | added).values(), _DAY))


@cache
def list_macros() -> tuple[Macro, ...]:
    """Return the public macros with their arguments."""
    arguments = {found[1]: " ".join(found[2].split()) for found in _MACRO.finditer(read_macros())}
    return tuple(Macro(name, arguments[name], doc) for name, doc in _MACROS.items())
