"""Handles page requests: opens a snapshot, calls the page function, renders the template.

Errors are rendered as pages, too. The parameter ``seqno`` shows a page as of a past masterchain
block, and the links of such a page keep it. Narrow screens show a column's name beside each cell.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from litestar import Response
from litestar.handlers import HTTPRouteHandler
from markupsafe import escape

from tonlake.api.errors import AnswerNotFound, LakeUnavailable, RequestInvalid
from tonlake.api.explorer.words.body import list_body
from tonlake.api.explorer.words.form import FILTERS, shorten
from tonlake.api.explorer.words.names import Names, load_labels
from tonlake.api.explorer.words.outcome import judge
from tonlake.api.explorer.words.sentence import write_amount
from tonlake.api.http.admission import in_queue
from tonlake.api.http.representation import tag_body
from tonlake.api.request.call import (
    ApiRequest,
    Arguments,
    Call,
    ConversionError,
    open_call,
    parse_any_address,
    parse_hash,
    parse_int32,
    read_arguments,
)
from tonlake.api.text.encoding import Address
from tonlake.api.v3.page.operation import CURSOR
from tonlake.queries.reader import Reader

_TABLE = re.compile(r"<thead>(.*?)</thead>(.*?)</table>", re.DOTALL)
_HEAD = re.compile(r'<th scope="col"[^>]*>(.*?)</th>', re.DOTALL)
_CELL = re.compile(r"<(t[dh])( [^>]*)?>")
_ROW = "<tr>"
_UNSEEN = '<span class="quiet">'
"""Starts a column name that is for screen readers only."""


def label_cells(page: str) -> str:
    """Return the page with ``data-label`` on all cells except the first of each row."""
    return _TABLE.sub(_label_table, page)


def _label_table(found: re.Match[str]) -> str:
    head, body = found.groups()
    names = ["" if name.startswith(_UNSEEN) else name for name in _HEAD.findall(head)]
    rows = (_label_row(row, names) for row in body.split(_ROW))
    return f"<thead>{head}</thead>{_ROW.join(rows)}</table>"


def _label_row(row: str, names: list[str]) -> str:
    """Return the row with labels; cells that already have one keep it."""
    columns = iter(["", *names[1:]])

    def label(cell: re.Match[str]) -> str:
        tag, attributes = cell[1], cell[2] or ""
        name = next(columns, "")
        if not name or "data-label=" in attributes:
            return cell[0]
        return f'<{tag}{attributes} data-label="{name}">'

    return _CELL.sub(label, row)


T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A")


def convert(text: str, read: Callable[[str], T], refusal: str) -> T:
    """Return the value of a text in a request; raise RequestInvalid if it has none."""
    try:
        return read(text)
    except ConversionError as error:
        raise RequestInvalid(refusal) from error


SEQNO = "seqno"
"""The parameter with the seqno of the masterchain block."""

TIMELESS = ("/lake", "/sql", "/docs", "/openapi.json", "/readyz", "/explorer/", "/api/")
"""Prefixes of paths that have no past, or another parameter for it."""

_TARGET = re.compile(r'(?<=\shref=")/[^"]*')
_FORM = re.compile(r'<form(?![^>]*(?:method="post"|class="travel"))[^>]*>')
NEWEST = "newest"
"""Fragment of the link that returns to the newest block."""

_PLACES = ("offset", "cursor", "before")
"""Parameters that continue a list; they are dropped when the block changes."""


class Moment(NamedTuple):
    """The block that a page shows, and the links and form fields to change it."""

    path: str
    """Path of the same page as of the newest block."""

    kept: list[tuple[str, str]]
    """Parameters of the page, kept by the form that selects a block."""

    seqno: int | None
    """The past masterchain block; None for the newest."""

    is_timeless: bool


def read_seqno(arguments: Arguments) -> int | None:
    """Return the masterchain block that a page is requested for; None for the newest."""
    text = (arguments.last(SEQNO) or "").strip().replace(",", "")
    refusal = "seqno is the number of a masterchain block"
    seqno = convert(text, parse_int32, refusal) if text else None
    if seqno is not None and seqno < 1:
        raise RequestInvalid("seqno is the number of a masterchain block, at least 1")
    return seqno


def describe_moment(request: ApiRequest) -> Moment:
    """Describe the block that a page shows; an invalid ``seqno`` counts as the newest."""
    arguments = read_arguments(request)
    path = request.url.path
    try:
        seqno = read_seqno(arguments)
    except RequestInvalid:
        seqno = None
    chosen = ((name, arguments.last(name)) for name in arguments.values)
    kept = [(name, text) for name, text in chosen if text and name not in (SEQNO, *_PLACES)]
    way = f"{path}?{urlencode(kept)}" if kept else path
    return Moment(way, kept, seqno, path.startswith(TIMELESS))


def find_utime(reader: Reader, seqno: int) -> int | None:
    """Return the Unix time of a masterchain block; None if it is not in the lake."""
    row = reader.one("explorer/latest_blocks", first=seqno, before=seqno + 1, limit=1)
    return None if row is None else row["utime"]


def keep_past(text: str, seqno: int) -> str:
    """Return the HTML with ``seqno`` added to all links and forms of the explorer."""

    def pin(match: re.Match[str]) -> str:
        path, mark, place = match[0].partition("#")
        if path.startswith(TIMELESS) or place == NEWEST:
            return match[0]
        sign = "&amp;" if "?" in path else "?"
        return f"{path}{sign}{SEQNO}={seqno}{mark}{place}"

    field = f'<input type="hidden" name="{SEQNO}" value="{escape(seqno)}">'
    return _FORM.sub(lambda match: match[0] + field, _TARGET.sub(pin, text))


THEMES = ("auto", "light", "dark")
THEME_COOKIE = "tonlake_theme"
KEPT = ("show", "full", "snapshot")
"""Parameters that links within a page keep: tab, full addresses, snapshot number."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
    "Vary": "Accept-Encoding, Cookie",
}
"""Security headers of every page: no content from other origins, no sniffing, no framing."""


_DIRECTIONS = {
    code: f"[U+{code:04X}]"
    for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
"""Bidirectional control characters, replaced by their code points so that they have no effect."""


class PageRequest(msgspec.Struct, frozen=True):
    """A request for a page: an open call, the parts of the path and the parameters."""

    call: Call
    parts: dict[str, str]
    arguments: Arguments
    names: Names

    @property
    def kept(self) -> dict[str, str]:
        """Return the parameters that links to other parts of a page keep."""
        return {name: text for name in KEPT if (text := self.argument(name))}

    def argument(self, name: str) -> str:
        """Return the parameter ``name``, or "" if it is absent."""
        return self.arguments.last(name) or ""

    def ask(self, route: Callable[[Call, Q], A], query: Q) -> A:
        """Call a v3 route and collect the names in its response."""
        found: Any = route(self.call, query)
        self.names.learn(found.address_book, getattr(found, "metadata", None))
        return found  # type: ignore[no-any-return] # the type of the route's response


class Shown(msgspec.Struct):
    """A page to render: template, title and template values."""

    template: str
    title: str
    values: dict[str, Any]
    status: int = 200


class Redirect(msgspec.Struct, frozen=True):
    """A redirect to another page of the explorer."""

    path: str


class ListPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a list, and the paths of its first and of its next page; "" without one."""

    rows: list[Any]
    newest: str = ""
    older: str = ""


def page(
    path: str, answer: Callable[[PageRequest], Shown | Redirect | Response[bytes]]
) -> HTTPRouteHandler:
    """Return the route of a page that ``answer`` fills; ``seqno`` shows it as of a past block."""

    def handle(request: ApiRequest) -> Response[bytes]:
        arguments = read_arguments(request)
        seqno = None if path.startswith(TIMELESS) else read_seqno(arguments)
        call = open_call(request, arguments, seqno)
        parts = {name: str(part) for name, part in request.path_params.items()}
        labels = load_labels(call.settings.lake)
        names = Names(call, labels, full=arguments.last("full") == "1")
        question = PageRequest(call, parts, arguments, names)
        shown = answer(question)
        if isinstance(shown, Redirect):
            headers = {**HEADERS, "Location": link(shown.path, seqno=seqno)}
            return Response(b"", status_code=HTTPStatus.SEE_OTHER, headers=headers)
        if isinstance(shown, Response):
            return shown
        snapshot = call.reader.snapshot
        values: dict[str, Any] = {"names": question.names, "notes": list(dict.fromkeys(call.notes))}
        call.notes.clear()
        call.headers.pop(CURSOR, None)  # of lists in the page, which has links of its own
        values |= {"snapshot": snapshot.number, "covered": snapshot.ranges}
        values |= {"kept": question.kept, "baseline": snapshot.baseline}
        if seqno is not None:
            values["past_utime"] = find_utime(call.reader, seqno)
        rendered = render(request, shown, values)
        rendered.headers["ETag"] = tag_body(rendered.content)
        return rendered

    handle.__doc__ = answer.__doc__
    return HTTPRouteHandler(path, http_method=["GET", "HEAD"])(in_queue(handle))


def render(request: ApiRequest, shown: Shown, values: dict[str, Any]) -> Response[bytes]:
    """Return the page as an HTTP response."""
    moment = describe_moment(request)
    text = fill_template(
        shown.template,
        {"notes": [], "snapshot": None, "covered": None, "kept": {}, "baseline": None}
        | {"past_utime": None, "moment": moment, "watched": ELECTOR}
        | values
        | {"is_live": moment.seqno is None and "snapshot" not in values.get("kept", {})}
        | shown.values
        | {
            "title": shown.title,
            "theme": read_theme(request),
            "themes": THEMES,
            "here": request.url.path,
            "with_pictures": request.app.state.settings.metadata.enabled,
            "with_sql": request.app.state.settings.sql.enabled,
        },
    )
    text = label_cells(text)
    if moment.seqno is not None:
        text = keep_past(text, moment.seqno)
    return Response(
        text.encode(), status_code=shown.status, media_type="text/html", headers=HEADERS
    )


def fill_template(name: str, values: dict[str, Any]) -> str:
    """Render a template; bidirectional control characters become visible."""
    return load_templates().get_template(name).render(values).translate(_DIRECTIONS)


def read_theme(request: ApiRequest) -> str:
    """Return the theme chosen in the cookie; "auto" by default."""
    theme = request.cookies.get(THEME_COOKIE, "")
    return theme if theme in THEMES else THEMES[0]


@cache
def load_templates() -> Environment:
    """Return the templates; values are escaped, and an undefined name is an error."""
    found = Environment(
        loader=PackageLoader("tonlake.api.explorer"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= FILTERS | {
        "body": list_body,
        "judged": judge,
        "with_kept": lambda path, kept, **changed: link(path, **(kept | changed)),
        "amount": write_amount,
    }
    return found


ELECTOR = f"-1:{'3' * 64}"
"""The elector has a transaction in every masterchain block: new-block pages watch its state."""

MAX_OFFSET = (1 << 31) - 1
MAX_DIGITS = 10
MAX_ADDRESS_CHARACTERS = 80
"""Maximum length of an invalid address quoted in an error message."""


def ask_or_say(ask: Callable[[], T]) -> T | str:
    """Return the result of ``ask``, or the error text if the lake cannot answer."""
    try:
        return ask()
    except (AnswerNotFound, LakeUnavailable) as error:
        return str(error)


def link(path: str, **parameters: object) -> str:
    """Return a path with all parameters that have a value."""
    present = {name: value for name, value in parameters.items() if value not in (None, "")}
    return f"{path}?{urlencode(present)}" if present else path


def name_path(question: PageRequest, kind: str, raw: str) -> str:
    """Return the path of a page about the account ``raw``; ``kind`` is its first segment."""
    return f"/{kind}/{quote(question.names.friendly(raw))}"


def read_number(question: PageRequest, name: str, default: int = 0) -> int:
    """Return a parameter that is a natural number, at most ``MAX_OFFSET``, or ``default``."""
    text = question.argument(name)
    known = text.isascii() and text.isdecimal()
    return min(int(text[:MAX_DIGITS]), MAX_OFFSET) if known else default


def read_offset(question: PageRequest) -> int:
    """Return the ``offset`` parameter; 0 if it is not a number."""
    return read_number(question, "offset")


def list_page(
    question: PageRequest, path: str, rows: list[Any], limit: int, **kept: object
) -> ListPage:
    """Return a page of at most ``limit`` rows from an offset; its links keep ``kept``.

    ``rows`` has one more if there is a next page.
    """
    offset = read_offset(question)
    return ListPage(
        rows=rows[:limit],
        newest=link(path, **kept) if offset else "",
        older=link(path, **kept, offset=offset + limit) if len(rows) > limit else "",
    )


def choose(question: PageRequest, name: str, choices: Iterable[str]) -> str:
    """Return the parameter ``name`` if it is one of ``choices``, else the first of these."""
    text, known = question.argument(name), list(choices)
    return text if text in known else known[0]


def read_hash(question: PageRequest) -> bytes:
    """Return the hash in the path of a page."""
    refusal = "a hash must be 64 hex digits or 44 base64 characters"
    return convert(question.parts["hash"], parse_hash, refusal)


def read_address(question: PageRequest) -> Address:
    """Return the address in the path of a page, in any notation."""
    text = question.parts["address"]
    refusal = f"not an address: {shorten(text, MAX_ADDRESS_CHARACTERS // 2)!r}"
    return convert(text, parse_any_address, refusal)
