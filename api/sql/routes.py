"""``/sql``: a statement in, rows out, for programs and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import RawBody  # noqa: TC002 - Litestar reads the annotations

from tonlake.api.errors import ApiError, ParameterMissing, RequestInvalid, SqlOff
from tonlake.api.explorer.frame import render
from tonlake.api.http.lane import in_lane
from tonlake.api.request.call import ApiRequest, note_warnings, open_call, read_arguments
from tonlake.api.request.params import Arguments, Converter
from tonlake.api.request.table_format import (
    HTML,
    JSON,
    MEDIA_TYPES,
    SAFE_CSV,
    choose_format,
    refine_format,
)
from tonlake.api.sql.origin import check_origin
from tonlake.api.sql.page import show_editor, show_result

if TYPE_CHECKING:
    from tonlake.api.settings import HttpSettings, SqlSettings
    from tonlake.api.sql.pool import SqlPool

TEXT_BYTES = 65_536
"""Most bytes of one statement."""

_TEXT = Converter(str, {"type": "string"})
_KNOWN = {"query": _TEXT, "format": _TEXT}
_SHARED = frozenset({"api_key", "snapshot", SAFE_CSV})
_FORMATS = (*MEDIA_TYPES, HTML)

OFF = "SQL over HTTP is off: set [sql] enabled (TONLAKE_SQL_ENABLED=1) to have it"


class SqlRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement as JSON; ``format`` wins over the header Accept."""

    query: str
    format: str | None = None


def answer_sql(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Answer the statement in ``query`` or in the body: plain text, a form, or JSON.

    Without one, there is the page to write it.

    Raises:
        OriginForbidden: a page of another web origin asks, whatever ``[http] cors_origins`` allows.
    """
    check_origin(request, request.app.state.settings.sql.hosts)
    arguments = read_arguments(request)
    if request.method == "POST":
        given = _read_body(body, request.content_type[0])
        for name in ("query", "format"):
            value = getattr(given, name)
            if value is not None:
                arguments.values[name] = [value]
    return _answer(request, arguments)


def _read_body(body: bytes, media_type: str) -> SqlRequest:
    try:
        if media_type == "application/json":
            return msgspec.json.decode(body, type=SqlRequest)
        text = body.decode()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestInvalid(f"the body cannot be read: {error}") from error
    if media_type == "application/x-www-form-urlencoded":
        fields = Arguments(parse_qsl(text, keep_blank_values=True))
        return SqlRequest(fields.last("query") or "", fields.last("format"))
    return SqlRequest(text)


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
    answer = pool.run(call.reader.snapshot, query, refine_format(form, arguments), settings.rows)
    call.headers["X-Tonlake-Rows"] = str(answer.rows)
    if not answer.complete:
        call.warn(f"the answer is cut after {answer.rows} rows, the most that are given at once")
    return Response(answer.body, media_type=MEDIA_TYPES[form])


def _answer_page(
    request: ApiRequest, arguments: Arguments, query: str, _form: str
) -> Response[bytes]:
    settings: SqlSettings = request.app.state.settings.sql
    if not query or not settings.enabled:
        return render(request, show_editor(query, None if settings.enabled else OFF), {})
    pool: SqlPool = request.app.state.sql
    try:
        _check_query(query, settings)
        call = open_call(request, arguments)
        shown = show_result(pool, call.reader.snapshot, query)
    except ApiError as error:
        return render(request, show_editor(query, error=error), {})
    snapshot = call.reader.snapshot
    return render(request, shown, {"snapshot": snapshot.number, "covered": snapshot.ranges})


_route = HTTPRouteHandler("/sql", http_method=["GET", "HEAD", "POST"], status_code=200)
routes = [_route(in_lane(answer_sql))]
