"""Renders the page ``/sql``: an editor with the schema and examples, a result and its chart."""

import re
import secrets
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from litestar import Response

from tonlake.api.errors import AddressInvalid, status_of
from tonlake.api.explorer.frame import HEADERS, Shown, render
from tonlake.api.request.call import ApiRequest
from tonlake.api.request.table_format import ARROW, CSV, JSON, PARQUET
from tonlake.api.sql.chart import KINDS, ChartUnfit, Drawing, draw_chart, is_number
from tonlake.api.sql.pool import SqlPool
from tonlake.api.text.encoding import name_workchain, parse_address
from tonlake.lake.duck.connection import (
    DERIVED_VIEWS,
    VIEWED_TABLES,
    describe_derived,
    read_macros,
    read_sql,
)
from tonlake.lake.duck.own import list_own_tables
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.schema.dictionary import REFERENCE_TABLES, VIEWS
from tonlake.queries.loader import REQUIRED, Chart, NamedQuery, load_queries

FOLDER = "everyday/"
_PARAMETER = re.compile(r"\$([a-z][a-z0-9_]*)")
_NO_MEANING = ("-- chart:", "-- returns:")


class Example(msgspec.Struct, frozen=True):
    """An example: title, statement, and path of the page with its result."""

    title: str
    query: str
    path: str


@cache
def list_examples() -> tuple[Example, ...]:
    """Return the everyday queries without required parameters, sorted by title."""
    found = [
        _read_example(query)
        for name, query in load_queries().items()
        if name.startswith(FOLDER) and REQUIRED not in query.defaults.values()
    ]
    return tuple(sorted(found, key=lambda example: example.title))


def _read_example(query: NamedQuery) -> Example:
    title = query.doc.split(". ")[0].removesuffix(".")
    text, chart = write_statement(query), query.chart
    fields: dict[str, str | tuple[str, ...]] = {"query": text, "format": "html", "chart": "none"}
    if chart is not None:
        fields |= {"chart": chart.kind, "x": chart.x, "y": chart.y, "by": chart.by or ""}
    return Example(title, text, "/sql?" + urlencode(fields, doseq=True))


def write_statement(query: NamedQuery) -> str:
    """Return a statement and its comment, each parameter replaced by its default and its name."""
    lines = query.sql.strip().splitlines()
    end = next(at for at, line in enumerate(lines) if not line.startswith("--"))
    meaning = takewhile(lambda line: not line.startswith(_NO_MEANING), lines[:end])
    head, body = "\n".join(meaning).rstrip("-\n "), "\n".join(lines[end:])

    def write_default(found: re.Match[str]) -> str:
        default = msgspec.json.encode(query.parameters[found[1]].default).decode()
        return f"/* {found[1]} */ {default}"

    return f"{head}\n{_PARAMETER.sub(write_default, body)}"


MAX_CHARACTERS = 120
"""Longer values are cut in the table of the page."""

_HASH = re.compile(r"[0-9a-fA-F]{64}")
_BASE64_HASH = re.compile(r"[-_+/0-9A-Za-z]{43}=")
_ADDRESS = re.compile(r"-?[0-9]{1,10}:[0-9a-fA-F]{64}|[-_+/0-9A-Za-z]{48}")
_HASH_PAGES = {
    "hash": "/transaction/",
    "tx_hash": "/transaction/",
    "last_tx_hash": "/transaction/",
    "trace_id": "/trace/",
    "trace": "/trace/",
}
"""Pages by column name; other hashes link to the search, but those that it never finds."""
_NEVER_FOUND = re.compile(
    r".*(code|data|body|state|state_root|library|frozen|list|currencies)_hash\w*|body|.*_payload"
    r"|.*action_id|public_key|rand_seed|created_by|site_adnl|storage_bag_id"
)
_BESIDE_OTHERS = frozenset({"account_status", "cell", "param", "present", "last_trans_hash"})
"""Columns beside a plain ``hash`` of a state, a cell, a parameter, a library or an account."""


class ShownCell(msgspec.Struct, frozen=True):
    """A value: its text (None for NULL) and the path of a page about it, if any."""

    text: str | None
    path: str | None = None


def write_row(names: Sequence[str], row: Sequence[Any]) -> list[ShownCell]:
    """Return the cells of one row."""
    values = dict(zip(names, row, strict=True))
    return [
        ShownCell(write_value(value), find_page(name, value, values))
        for name, value in zip(names, row, strict=True)
    ]


def write_value(value: Any) -> str | None:  # noqa: ANN401 - any JSON
    """Format a value as text; None for NULL."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"


def find_page(name: str, value: object, row: dict[str, Any]) -> str | None:
    """Return the page about a hash, an address, or an id with the workchain of its row; or None."""
    is_other = name == "hash" and "lt" not in row and not _BESIDE_OTHERS.isdisjoint(row)
    if not isinstance(value, str) or is_other or _NEVER_FOUND.fullmatch(name):
        return None
    if _ADDRESS.fullmatch(value):
        return _link_address(value)
    if _BASE64_HASH.fullmatch(value):
        return f"/search?q={quote(value, safe='')}"
    if not _HASH.fullmatch(value):
        return None
    workchain = row.get(name_workchain(name))
    if isinstance(workchain, int):
        return _link_address(f"{workchain}:{value}")
    return f"{_HASH_PAGES.get(name, '/search?q=')}{value.lower()}"


def _link_address(text: str) -> str | None:
    """Return the path of an account page; None if ``text`` is not a valid address."""
    try:
        return f"/account/{quote(str(parse_address(text)))}"
    except AddressInvalid:
        return None


_COMMENT = re.compile(r"^comment on column \w+\.(\w+) is\s+'((?:[^']|'')*)'", re.MULTILINE)
_MACRO = re.compile(r"^create or replace macro (ton_\w+)\(([^)]*)\)", re.MULTILINE)
_MACRO_DOC = re.compile(r"^-- (ton_\w+): (.+)$", re.MULTILINE)
"""Comments of public macros; the others are parts of these."""


class ShownColumn(NamedTuple):
    """A column of a view; ``type`` is "" for columns that the view computes."""

    name: str
    type: str
    doc: str


class ShownView(NamedTuple):
    """A table, view or macro, whose ``title`` has its parameters; columns are as in the schema."""

    name: str
    title: str
    doc: str
    columns: Sequence[Any] = ()


@cache
def list_views() -> Mapping[str, tuple[ShownView, ...]]:
    """Return the readable views, and the tables with the views over them, each sorted by name."""
    tables = [
        ShownView(name, name, table.doc, table.shown) for name, table in VIEWED_TABLES.items()
    ]
    tables += map(_describe_derived, DERIVED_VIEWS)
    people = [
        ShownView(view.name, view.title, view.doc, view.columns)
        for view in (*REFERENCE_TABLES, *VIEWS.values())
    ]
    return {"Views for people": tuple(sorted(people)), "Tables": tuple(sorted(tables))}


def _describe_derived(name: str) -> ShownView:
    """Describe a view over a table: the table's columns and those with a column comment."""
    doc, base = describe_derived(name)
    commented = _COMMENT.finditer(read_sql(name))
    columns: dict[str, object] = {each.name: each for each in base}
    columns |= {found[1]: ShownColumn(found[1], "", found[2]) for found in commented}
    return ShownView(name, name, doc, tuple(columns.values()))


@cache
def list_macros() -> tuple[ShownView, ...]:
    """Return the public macros with their arguments."""
    titles = {
        found[1]: f"{found[1]}({' '.join(found[2].split())})"
        for found in _MACRO.finditer(read_macros())
    }
    docs = sorted(_MACRO_DOC.findall(read_macros()))
    return tuple(ShownView(name, titles[name], doc) for name, doc in docs)


TEMPLATE = "sql.html"
SHOWN_ROWS = 200
DRAWN_ROWS = 2000
"""Rows in the table and in the chart; downloads contain all."""


class Header(msgspec.Struct, frozen=True):
    """A column of a result."""

    name: str
    type: str

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return is_number(self.type)


class SqlResult(msgspec.Struct, frozen=True):
    """The decoded JSON answer to a statement."""

    columns: list[Header]
    rows: list[list[Any]]
    row_count: int
    complete: bool


def render_page(
    request: ApiRequest, shown: Shown, snapshot: Snapshot | None = None
) -> Response[bytes]:
    """Render the page; a nonce lets only the editor add styles."""
    own = [
        ShownView(
            table.name,
            table.name,
            f"User-defined table, per {table.per}, up to commit {state.commit}",
            [ShownColumn(each.name, each.type, "") for each in state.columns],
        )
        for table, state in list_own_tables(request.app.state.lake_dir)
    ]
    groups = [("User-defined tables", own)] if own else []
    shown.values["views"] = [*groups, *list_views().items()]
    values = {} if snapshot is None else {"snapshot": snapshot.number, "covered": snapshot.ranges}
    nonce = secrets.token_urlsafe(16)
    answer = render(request, shown, {**values, "nonce": nonce})
    policy = f"{HEADERS['Content-Security-Policy']}; style-src 'self' 'nonce-{nonce}'"
    answer.headers["Content-Security-Policy"] = policy
    return answer


def show_editor(
    query: str,
    signatures: tuple[str, ...] = (),
    notice: str | None = None,
    error: Exception | None = None,
) -> Shown:
    """Return the page without a result; ``notice`` says why the statement was not run."""
    status = 200 if error is None else status_of(error)
    values = _list_values(query, signatures) | {
        "notice": notice,
        "error": None if error is None else str(error),
    }
    return Shown(TEMPLATE, "SQL", values, status)


def show_result(
    pool: SqlPool, snapshot: Snapshot, query: str, signatures: tuple[str, ...], choice: Chart
) -> Shown:
    """Return the page with the answer to a statement and the chosen chart, or raise ApiError."""
    answer = pool.run(snapshot, query, JSON, DRAWN_ROWS, signatures)
    fields = {"query": query} | ({"signature": signatures} if signatures else {})
    result = msgspec.json.decode(answer.body, type=SqlResult)
    names = [each.name for each in result.columns]
    chart, unfit = _draw(result, choice)
    values = _list_values(query, signatures) | {
        "result": result,
        "cells": [write_row(names, row) for row in result.rows[:SHOWN_ROWS]],
        "duration_ms": round(answer.duration_ms),
        "chart": chart,
        "unfit": unfit,
        "choice": choice,
        "kinds": KINDS,
        "notes": answer.warnings,
        "files": [
            (form, "/sql?" + urlencode(fields | {"format": form}, doseq=True))
            for form in (CSV, JSON, ARROW, PARQUET)
        ],
    }
    return Shown(TEMPLATE, "SQL", values)


def _draw(result: SqlResult, choice: Chart) -> tuple[Drawing | None, str]:
    """Return the chart, or the reason why there is none; "" if no chart was requested."""
    if choice.kind == "none":
        return None, ""
    columns = [(each.name, each.type) for each in result.columns]
    try:
        return draw_chart(columns, result.rows, choice), ""
    except ChartUnfit as error:
        return None, "" if choice.kind == "auto" else str(error)


def _list_values(query: str, signatures: tuple[str, ...]) -> dict[str, Any]:
    return {
        "query": query,
        "signatures": signatures,
        "notes": (),
        "examples": list_examples(),
        "macros": list_macros(),
        "result": None,
        "chart": None,
        "error": None,
        "notice": None,
    }
