"""``/sql``: a statement in, rows out for programs; for people a page with an editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import RawBody  # noqa: TC002 - Litestar reads the annotations

from tonlake.api.errors import ApiError, ParameterMissing, RequestInvalid, SqlOff, status_of
from tonlake.api.explorer.frame import Shown, render
from tonlake.api.http.lane import in_lane
from tonlake.api.request.call import ApiRequest, note_warnings, open_call, read_arguments
from tonlake.api.request.params import Arguments, Converter
from tonlake.api.request.table_format import (
    ARROW,
    CSV,
    HTML,
    JSON,
    MEDIA_TYPES,
    PARQUET,
    SAFE_CSV,
    choose_format,
    refine_format,
)
from tonlake.api.sql.catalogue import list_own_views, list_views
from tonlake.api.sql.chart import draw_chart
from tonlake.api.sql.origin import check_origin
from tonlake.api.sql.request import list_signatures, read_body

if TYPE_CHECKING:
    from tonlake.api.settings import HttpSettings, SqlSettings
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


def show_editor(query: str, off: str | None = None, error: Exception | None = None) -> Shown:
    """Return the page without a result: to begin with, or with what went wrong."""
    status = 200 if error is None else status_of(error)
    values = _list_values(query) | {"off": off, "error": None if error is None else str(error)}
    return Shown(TEMPLATE, "SQL", values, status)


def show_result(
    pool: SqlPool, snapshot: Snapshot, query: str, signatures: tuple[str, ...] = ()
) -> Shown:
    """Return the page with the answer to a statement.

    Raises:
        ApiError: there is none.
    """
    answer = pool.run(snapshot, query, JSON, SHOWN_ROWS, signatures)
    result = msgspec.json.decode(answer.body, type=Result)
    given = {"signature": signatures} if signatures else {}
    values = _list_values(query) | {
        "result": result,
        "cells": [[write_cell(value) for value in row] for row in result.rows],
        "duration_ms": round(answer.duration_ms),
        "signatures": signatures,
        "notes": answer.warnings,
        "chart": draw_chart([(each.name, each.type) for each in result.columns], result.rows),
        "files": [
            (form, "/sql?" + urlencode({"query": query, "format": form} | given, doseq=True))
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
        "signatures": (),
        "notes": (),
        "result": None,
        "chart": None,
        "error": None,
        "off": None,
    }


TEXT_BYTES = 65_536
"""Most bytes of one statement."""

_TEXT = Converter(str, {"type": "string"})
_KNOWN = {"query": _TEXT, "format": _TEXT, "signature": _TEXT}
_SHARED = frozenset({"api_key", "snapshot", SAFE_CSV})
_FORMATS = (*MEDIA_TYPES, HTML)

OFF = "SQL over HTTP is off: set [sql] enabled (TONLAKE_SQL_ENABLED=1) to have it"


def answer_sql(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Answer the statement in ``query`` or in the body: plain text, a form, or JSON.

    Without one, there is the page to write it.

    Raises:
        OriginForbidden: a page of another web origin asks, whatever ``[http] cors_origins`` allows.
    """
    check_origin(request, request.app.state.settings.sql.hosts)
    arguments = read_arguments(request)
    if request.method == "POST":
        request_body = read_body(body, request.content_type[0])
        for name in ("query", "format"):
            value = getattr(request_body, name)
            if value is not None:
                arguments.values[name] = [value]
        if request_body.signature is not None:
            given = request_body.signature
            arguments.values["signature"] = [given] if isinstance(given, str) else list(given)
    return _answer(request, arguments)


def _answer(request: ApiRequest, arguments: Arguments) -> Response[bytes]:
    settings: HttpSettings = request.app.state.settings.http
    note_warnings(request, arguments.warnings(_KNOWN, _SHARED), settings)
    query = arguments.last("query")
    usual = HTML if query is None and request.method != "POST" else JSON
    form = arguments.last("format") or choose_format(request.headers.get("accept", "")) or usual
    if form not in _FORMATS:
        raise RequestInvalid(f"format is one of {', '.join(_FORMATS)}, and not {form[:80]!r}")
    answer = _answer_page if form == HTML else _answer_rows
    answered = answer(request, arguments, query or "", form)
    answered.headers["Vary"] = "Accept, Cookie"
    return answered


def _check_query(query: str, settings: SqlSettings) -> None:
    if not settings.enabled:
        raise SqlOff(OFF)
    if not query.strip():
        raise ParameterMissing("query is required: one SQL statement")
    if len(query.encode("utf-8", "replace")) > TEXT_BYTES:
        raise RequestInvalid(f"the statement has more than {TEXT_BYTES:,} bytes")


def _answer_rows(
    request: ApiRequest, arguments: Arguments, query: str, form: str
) -> Response[bytes]:
    settings: SqlSettings = request.app.state.settings.sql
    _check_query(query, settings)
    pool: SqlPool = request.app.state.sql
    call = open_call(request, arguments)
    form_asked, signatures = refine_format(form, arguments), list_signatures(arguments)
    answer = pool.run(call.reader.snapshot, query, form_asked, settings.rows, signatures)
    call.headers["X-Tonlake-Rows"] = str(answer.rows)
    for note in answer.warnings:
        call.warn(note)
    if not answer.complete:
        call.warn(f"the answer is cut after {answer.rows} rows, the most that are given at once")
    return Response(answer.body, media_type=MEDIA_TYPES[form])


def _answer_page(
    request: ApiRequest, arguments: Arguments, query: str, _form: str
) -> Response[bytes]:
    settings: SqlSettings = request.app.state.settings.sql
    own = list_own_views(request.app.state.lake_dir)
    if not query or not settings.enabled:
        shown = show_editor(query, None if settings.enabled else OFF)
        shown.values["views"] = (*own, *list_views())
        return render(request, shown, {})
    pool: SqlPool = request.app.state.sql
    try:
        _check_query(query, settings)
        call = open_call(request, arguments)
        shown = show_result(pool, call.reader.snapshot, query, list_signatures(arguments))
    except ApiError as error:
        return render(request, show_editor(query, error=error), {})
    shown.values["views"] = (*own, *list_views())
    snapshot = call.reader.snapshot
    return render(request, shown, {"snapshot": snapshot.number, "covered": snapshot.ranges})


_route = HTTPRouteHandler("/sql", http_method=["GET", "HEAD", "POST"], status_code=200)
routes = [_route(in_lane(answer_sql))]
