"""The page of SQL: editor, tables and columns, examples, the result as a table and a picture."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec

from tonlake.api.errors import status_of
from tonlake.api.explorer.frame import Shown
from tonlake.api.request.table_format import ARROW, CSV, HTML, JSON, PARQUET
from tonlake.api.sql.chart import draw_chart
from tonlake.lake.duck.connection import DERIVED_VIEWS, PARTITION, VIEW_NAMES, read_sql
from tonlake.lake.schema import TABLES

if TYPE_CHECKING:
    from tonlake.api.sql.pool import SqlPool
    from tonlake.lake.log.snapshot import Snapshot

TEMPLATE = "sql.html"
SHOWN_ROWS = 200
"""Rows that the page shows; files have all of them."""

MOST_CHARACTERS = 120
"""Values that are longer are cut in the table of the page."""

_EXAMPLES = {
    "Transactions per hour": """\
select date_trunc('hour', make_timestamp(now * 1000000)) as hour, count(*) as transactions
from transactions
group by all order by hour""",
    "Busiest accounts": """\
select ton_friendly(workchain, account) as account, count(*) as transactions,
    sum(total_fees) / 1e9 as fees_ton
from transactions
group by all order by transactions desc limit 10""",
    "Messages by opcode": """\
select format('0x{:08x}', opcode & 4294967295) as opcode, count(*) as messages
from messages
where opcode is not null
group by all order by messages desc limit 15""",
    "Transactions by workchain": """\
select workchain, count(*) as blocks, sum(tx_count) as transactions
from blocks
group by all order by workchain""",
}


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


class Header(msgspec.Struct, frozen=True):
    """A column of a result."""

    name: str
    type: str

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return self.type.startswith(("int", "uint", "double", "float", "decimal"))


class Result(msgspec.Struct, frozen=True):
    """The JSON answer to a statement, read again."""

    columns: list[Header]
    rows: list[list[Any]]
    row_count: int
    complete: bool


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
    return tuple(sorted(views, key=lambda view: view.name))


def _read_doc(name: str) -> str:
    lines = (line for line in read_sql(name).splitlines() if line.startswith("--"))
    return " ".join(line.removeprefix("--").strip() for line in lines)


def show_editor(query: str, off: str | None = None, error: Exception | None = None) -> Shown:
    """Return the page without a result: to begin with, or with what went wrong."""
    status = 200 if error is None else status_of(error)
    values = _list_values(query) | {"off": off, "error": None if error is None else str(error)}
    return Shown(TEMPLATE, "SQL", values, status)


def show_result(pool: SqlPool, snapshot: Snapshot, query: str) -> Shown:
    """Return the page with the answer to a statement.

    Raises:
        ApiError: there is none.
    """
    answer = pool.run(snapshot, query, JSON, SHOWN_ROWS)
    result = msgspec.json.decode(answer.body, type=Result)
    values = _list_values(query) | {
        "result": result,
        "cells": [[write_cell(value) for value in row] for row in result.rows],
        "duration_ms": round(answer.duration_ms),
        "chart": draw_chart([(each.name, each.type) for each in result.columns], result.rows),
        "files": [
            (form, "/sql?" + urlencode({"query": query, "format": form}))
            for form in (CSV, JSON, ARROW, PARQUET)
        ],
    }
    return Shown(TEMPLATE, "SQL", values)


def write_cell(value: Any) -> str | None:  # noqa: ANN401 - any JSON
    """Return a value as the table shows it; None for NULL."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def _list_values(query: str) -> dict[str, Any]:
    examples = [
        (name, text, "/sql?" + urlencode({"query": text, "format": HTML}))
        for name, text in _EXAMPLES.items()
    ]
    return {
        "query": query,
        "examples": examples,
        "views": list_views(),
        "result": None,
        "chart": None,
        "error": None,
        "off": None,
    }
