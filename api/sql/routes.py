"""``/sql``: runs a statement and returns rows, or a page with an editor.

SQL is answered to browsers only from pages of the service itself, under its own host name: a
browser lets any page send requests, and a page whose host name resolves to this service (DNS
rebinding) could read the responses. Other clients send neither Origin nor a foreign host name.
"""

import re
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlsplit

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import RawBody

from tonlake.api.errors import ApiError, ParameterMissing, RequestInvalid, SqlForbidden
from tonlake.api.http.admission import in_queue
from tonlake.api.request.call import (
    ApiRequest,
    Arguments,
    Converter,
    note_warnings,
    open_call,
    read_arguments,
    refine_format,
)
from tonlake.api.request.table_format import (
    HTML,
    JSON,
    MEDIA_TYPES,
    SAFE_CSV,
    choose_format,
    read_accept,
)
from tonlake.api.settings import SqlSettings
from tonlake.api.sql.chart import KINDS
from tonlake.api.sql.page import render_page, show_editor, show_result
from tonlake.api.sql.pool import SqlPool
from tonlake.queries.loader import Chart

PRIVATE_DOMAINS = (".localhost", ".local", ".internal", ".home.arpa")
"""Domains that public name servers do not resolve (RFC 6761, 6762, 8375)."""

_PORT = re.compile(r":\d*$")
_DEFAULT_PORTS = (":80", ":443")
_OWN_SITES = ("same-origin", "none")


def check_origin(request: ApiRequest, hosts: str) -> None:
    """Refuse a request from a page of another origin, or under a foreign host name.

    Links from other sites pass: they show a statement without running it. ``hosts`` are names
    allowed besides IP addresses and private names, separated by commas. Raises SqlForbidden if
    the request is refused.
    """
    own = _read_header(request, b"host")
    names = {part.strip().lower() for part in hosts.split(",")}
    if not all(_is_own(_PORT.sub("", host).lower(), names) for host in own):
        raise SqlForbidden(
            "SQL is not answered under this host name: add it to [sql] hosts if it is the service's"
        )
    origins = _read_header(request, b"origin")
    if not {_find_authority(origin) for origin in origins} <= {_shorten(host) for host in own}:
        raise SqlForbidden("SQL requests from pages of other web origins are refused")
    mode = _read_header(request, b"sec-fetch-mode")
    by_link = request.method == "GET" and (
        mode == ["navigate"] or not request.scope["query_string"]
    )
    if not by_link:
        check_own(request)


def check_own(request: ApiRequest) -> None:
    """Refuse a request that another site initiates, even by a link, with SqlForbidden."""
    if is_foreign(request):
        raise SqlForbidden("SQL requests from pages of other web origins are refused")


def is_foreign(request: ApiRequest) -> bool:
    """Return whether a browser reports that another site initiated the request."""
    return any(site not in _OWN_SITES for site in _read_header(request, b"sec-fetch-site"))


def _read_header(request: ApiRequest, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in request.scope["headers"] if key == name]


def _is_own(host: str, names: set[str]) -> bool:
    """Return whether ``host`` is a name that no third party can serve pages under."""
    host = host.rstrip(".")
    if "." not in host or host.endswith(PRIVATE_DOMAINS) or host in names:
        return True
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _find_authority(origin: str) -> str | None:
    """Return host and port of an origin; None for ``null`` and invalid origins."""
    try:
        return _shorten(urlsplit(origin).netloc) or None
    except ValueError:
        return None


def _shorten(authority: str) -> str:
    """Return host and port in lower case, without a default port."""
    authority = authority.lower()
    for port in _DEFAULT_PORTS:
        authority = authority.removesuffix(port)
    return authority


SIGNATURES = 20
"""Maximum signatures of one statement."""


class SqlRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement as JSON; ``format`` overrides the Accept header.

    ``signature`` has TL-B constructors, ABIs of Tact or Tolk, or names of built-in layouts;
    messages that match them are tables of the statement.
    """

    query: str
    format: str | None = None
    signature: tuple[str, ...] | str | None = None


def read_body(body: bytes, media_type: str) -> SqlRequest:
    """Parse a request body: JSON, a form, or the plain statement."""
    try:
        if media_type == "application/json":
            return msgspec.json.decode(body, type=SqlRequest)
        text = body.decode()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestInvalid(f"the body cannot be read: {error}") from error
    if media_type == "application/x-www-form-urlencoded":
        fields = Arguments(parse_qsl(text, keep_blank_values=True))
        signatures = tuple(fields.values.get("signature", ()))
        return SqlRequest(fields.last("query") or "", fields.last("format"), signatures or None)
    return SqlRequest(text)


def list_signatures(arguments: Arguments) -> tuple[str, ...]:
    """Return the signatures of a request, without the empty one that the page may send."""
    signatures = tuple(text for text in arguments.values.get("signature", ()) if text.strip())
    if len(signatures) > SIGNATURES:
        raise RequestInvalid(f"a statement takes at most {SIGNATURES} signatures")
    return signatures


TEXT_BYTES = 65_536
"""Maximum size of one statement."""

_TEXT = Converter(str, {"type": "string"})
_COLUMNS = Converter(str, {"type": "array", "items": {"type": "string"}}, many=True)
_KNOWN = {
    "query": _TEXT,
    "format": _TEXT,
    **dict.fromkeys(("chart", "x", "by"), _TEXT),
    **dict.fromkeys(("y", "signature"), _COLUMNS),
}
_SHARED = frozenset({"api_key", "snapshot", SAFE_CSV})
_FORMATS = (*MEDIA_TYPES, HTML)

FOREIGN = "The statement came with a link from another site: check it, then run it"
OFF = "SQL over HTTP is off: set [sql] enabled (TONLAKE_SQL_ENABLED=1) to turn it on"


def answer_sql(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Run the statement in ``query`` or in the body: plain text, a form, or JSON.

    Without a statement, return the SQL page. Raises SqlForbidden if the request comes from
    another origin, even one in ``[http] cors_origins``.
    """
    check_origin(request, request.app.state.settings.sql.hosts)
    arguments = read_arguments(request)
    if request.method == "POST":
        request_body = read_body(body, request.content_type[0])
        for name in ("query", "format", "signature"):
            value = getattr(request_body, name)
            if value is not None:
                arguments.values[name] = [value] if isinstance(value, str) else [*value]
    return _answer(request, arguments)


def _answer(request: ApiRequest, arguments: Arguments) -> Response[bytes]:
    note_warnings(request, arguments.warnings(_KNOWN, _SHARED))
    query = arguments.last("query")
    usual = HTML if query is None and request.method != "POST" else JSON
    form = arguments.last("format") or choose_format(read_accept(request.scope["headers"])) or usual
    if form not in _FORMATS:
        raise RequestInvalid(f"format is one of {', '.join(_FORMATS)}, not {form[:80]!r}")
    answer = _answer_page if form == HTML else _answer_rows
    answered = answer(request, arguments, query or "", form)
    answered.headers["Vary"] = "Accept, Cookie"
    return answered


def _check_query(query: str, settings: SqlSettings) -> None:
    if not settings.enabled:
        raise SqlForbidden(OFF)
    if not query.strip():
        raise ParameterMissing("query is required: one SQL statement")
    if len(query.encode("utf-8", "replace")) > TEXT_BYTES:
        raise RequestInvalid(f"the statement has more than {TEXT_BYTES:,} bytes")


def _answer_rows(
    request: ApiRequest, arguments: Arguments, query: str, form: str
) -> Response[bytes]:
    settings: SqlSettings = request.app.state.settings.sql
    check_own(request)
    _check_query(query, settings)
    pool: SqlPool = request.app.state.sql
    call = open_call(request, arguments)
    form_asked, signatures = refine_format(form, arguments), list_signatures(arguments)
    answer = pool.run(call.reader.snapshot, query, form_asked, settings.rows, signatures)
    call.headers["X-Tonlake-Rows"] = str(answer.rows)
    for note in answer.warnings:
        call.warn(note)
    if not answer.complete:
        call.warn(f"the answer is cut after {answer.rows} rows, the maximum per answer")
    return Response(answer.body, media_type=MEDIA_TYPES[form])


def _answer_page(
    request: ApiRequest, arguments: Arguments, query: str, _form: str
) -> Response[bytes]:
    settings: SqlSettings = request.app.state.settings.sql
    signatures = tuple(arguments.values.get("signature", ()))
    if not settings.enabled:
        return render_page(request, show_editor(query, signatures, f"Not enabled. {OFF}"))
    if not query:
        return render_page(request, show_editor(query, signatures))
    if is_foreign(request):
        return render_page(request, show_editor(query, signatures, FOREIGN))
    pool: SqlPool = request.app.state.sql
    try:
        _check_query(query, settings)
        call = open_call(request, arguments)
        snapshot = call.reader.snapshot
        signatures = list_signatures(arguments)
        shown = show_result(pool, snapshot, query, signatures, _read_choice(arguments))
    except ApiError as error:
        return render_page(request, show_editor(query, signatures, error=error))
    return render_page(request, shown, snapshot)


def _read_choice(arguments: Arguments) -> Chart:
    kind = arguments.last("chart") or KINDS[0]
    if kind not in KINDS:
        raise RequestInvalid(f"chart is one of {', '.join(KINDS)}, not {kind[:80]!r}")
    columns = tuple(dict.fromkeys(filter(None, arguments.values.get("y", ()))))
    return Chart(kind, arguments.last("x") or "", columns, arguments.last("by") or "")


_route = HTTPRouteHandler("/sql", http_method=["GET", "HEAD", "POST"], status_code=200)
routes = [_route(in_queue(answer_sql))]
