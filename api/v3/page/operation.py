"""The frame of every operation of version 3: parse arguments, query, render, respond.

Requests outside of what a lake covers get an error, not an empty result.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.params import RawBody

from tonlake.api.errors import CredentialMissing, NotCovered, RequestInvalid
from tonlake.api.http.admission import in_queue
from tonlake.api.request.call import (
    INT64_MAX,
    ApiRequest,
    Call,
    ConversionError,
    Converter,
    Int32,
    Lt,
    Query,
    Sort,
    Utime,
    Written,
    answer_body,
    converters_of,
    keep_answer,
    open_call,
    read_known,
    read_query,
    refine_format,
)
from tonlake.api.request.table_format import (
    CSV,
    JSON,
    MEDIA_TYPES,
    SAFE_CSV,
    WRITERS,
    choose_format,
    list_rows,
    read_accept,
    tabulate,
)
from tonlake.api.settings import HttpSettings
from tonlake.api.text.encoding import Address, name_ranges
from tonlake.queries.reader import Reader

Range = tuple[int, int]
Bounds = tuple[int | None, int | None]


class Extent(msgspec.Struct, frozen=True):
    """The extent of one contiguous range of masterchain blocks; both ends are included.

    At its edges other blocks may be of the same time: ``whole_utime`` and ``whole_lt`` are the
    parts in which every block of the chain is in the range.
    """

    mc_seqno: Range
    utime: Range
    lt: Range
    whole_utime: Range
    whole_lt: Range


def read_extents(reader: Reader) -> list[Extent]:
    """Return the extent of every contiguous range of the snapshot."""
    ranges = reader.snapshot.ranges
    rows = reader.lasting_rows("v3/coverage", mc_seqnos=[end for pair in ranges for end in pair])
    ends = {row["mc_seqno"]: row for row in rows}
    return [
        Extent(
            mc_seqno=span,
            utime=(first["first_utime"], last["last_utime"]),
            lt=(first["first_lt"], last["last_lt"]),
            whole_utime=(0 if span[0] <= 1 else first["own_utime"] + 1, last["settled_utime"] - 1),
            whole_lt=(0 if span[0] <= 1 else first["own_lt"], last["settled_lt"]),
        )
        for span in ranges
        if (first := ends.get(span[0])) and (last := ends.get(span[1]))
    ]


def check_mc_seqno(reader: Reader, mc_seqno: int | None) -> None:
    """Raise NotCovered for a masterchain seqno, if any, that the lake does not cover."""
    ranges = reader.snapshot.ranges
    if mc_seqno is not None and not any(first <= mc_seqno <= last for first, last in ranges):
        raise NotCovered(
            f"masterchain block {mc_seqno} not found; this lake covers {name_ranges(ranges)}"
        )


def check_seqno(reader: Reader, workchain: int | None, shard: int | None, seqno: int) -> None:
    """Raise NotCovered for a seqno outside the covered range of every requested shard."""
    rows = reader.rows("v3/seqno_ranges", workchain=workchain, shard=shard)
    held = [(row["first_seqno"], row["last_seqno"]) for row in rows]
    if not any(first <= seqno <= last for first, last in held):
        raise NotCovered(
            f"block {seqno} not found; this lake covers {name_ranges(held)} of these shards"
        )


def check_accounts_known(
    reader: Reader, unknown: Sequence[Address], mc_seqno: int | None = None
) -> None:
    """Refuse unknown accounts that may exist as of a block, the newest by default.

    An account missing from the lake does not exist if the lake is complete since the zero state or
    the baseline. Raises NotCovered with the first such account and the covered ranges.
    """
    ranges = reader.snapshot.known_ranges
    if reader.snapshot.has_every_account(ranges[-1][1] if mc_seqno is None else mc_seqno):
        return
    complete = len(ranges) == 1 and ranges[0][0] <= 1
    if complete and any(row["is_there"] for row in reader.lasting_rows("v3/zero_state")):
        return
    others = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
    raise NotCovered(
        f"account {unknown[0]}{others} is not known: this lake does not have everything from the "
        f"zero state on, and no block of masterchain {name_ranges(ranges[-1:])} touched it"
    )


def is_current(reader: Reader, state: Mapping[str, Any], mc_seqno: int | None = None) -> bool:
    """Return whether no gap lies between an account's last state and a block (the newest)."""
    ranges = reader.snapshot.known_ranges
    at_block = ranges[-1][1] if mc_seqno is None else mc_seqno
    begin = max(first for first, _last in ranges if first <= at_block)
    return begin == ranges[0][0] or bool(state["mc_seqno"] >= begin)


def describe_gaps(ranges: Sequence[Range]) -> str | None:
    """Return a warning about masterchain blocks missing at the start or in between, or None."""
    if len(ranges) > 1:
        return f"this lake has holes, it covers masterchain {name_ranges(ranges)}"
    if ranges and ranges[0][0] > 1:
        return f"this lake begins in the middle, it covers masterchain {name_ranges(ranges)}"
    return None


def check_no_gap(
    reader: Reader, *, utime: Bounds = (None, None), lt: Bounds = (None, None)
) -> None:
    """Raise NotCovered if neither span of an empty result lies within one contiguous range."""
    ranges = reader.snapshot.ranges
    if describe_gaps(ranges) is None:
        return
    newest = ranges[-1]
    for extent in read_extents(reader):
        for (first, last), (start, end) in ((utime, extent.whole_utime), (lt, extent.whole_lt)):
            ends_inside = extent.mc_seqno == newest or (last is not None and last <= end)
            if first is not None and first >= start and ends_inside:
                return
    raise NotCovered(f"nothing found, and this lake covers only masterchain {name_ranges(ranges)}")


def check_no_contract_missing(reader: Reader, mc_seqno: int | None = None) -> None:
    """Refuse an empty list of contracts as of a block (default: newest) if a gap may be the cause.

    If the baseline was read from a later state than its own, contracts touched in between may not
    have been detected. Raises NotCovered if changes of states are missing.
    """
    snapshot = reader.snapshot
    at_block = snapshot.last_mc_seqno if mc_seqno is None else mc_seqno
    baseline = snapshot.baseline
    is_exact = baseline is not None and baseline.state_mc_seqno == baseline.mc_seqno
    if is_exact and snapshot.has_every_account(at_block):
        return
    if describe_gaps(snapshot.known_ranges) is not None:
        covered = name_ranges(snapshot.ranges)
        raise NotCovered(f"nothing found, and this lake covers only masterchain {covered}")


def check_spans(reader: Reader, utime: Bounds, *lts: Bounds) -> None:
    """Raise NotCovered for a span of time or logical time that the lake does not cover at all."""
    for what, (first, last) in (("time", utime), *(("logical time", lt) for lt in lts)):
        if first is None and last is None:
            continue
        extents = read_extents(reader)
        held = [extent.utime if what == "time" else extent.lt for extent in extents]
        after, before = first or 0, INT64_MAX if last is None else last
        if not any(after <= end and before >= start for start, end in held):
            shown = {None: "", INT64_MAX: f"{INT64_MAX} (negative numbers wrap around)"}
            raise NotCovered(
                f"{what} {shown.get(first, first)}..{shown.get(last, last)} "
                f"is not indexed; this lake covers {name_ranges(held)}"
            )


DEFAULT_LIMIT = 10


CURSOR = "X-Tonlake-Cursor"
"""Header of a full page: the value of the parameter ``cursor`` for the next page."""

_CURSOR = re.compile(r"([0-9]{1,10})-([0-9]{1,10})")
CURSOR_FORM = "^[0-9]{1,9}-[0-9]{1,9}$"  # any of which has 31 bits


class PageCursor(msgspec.Struct, frozen=True):
    """Where a page begins, and the snapshot that served the first page."""

    snapshot: int
    offset: int

    def __str__(self) -> str:
        return f"{self.snapshot}-{self.offset}"


def parse_page_cursor(text: str) -> PageCursor:
    """Parse a value of the header ``X-Tonlake-Cursor``."""
    match = _CURSOR.fullmatch(text)
    if match is None or max(int(match[1]), int(match[2])) > INT32_MAX:
        raise ConversionError(text)
    return PageCursor(int(match[1]), int(match[2]))


INT32_MAX = (1 << 31) - 1


class Page(Query, frozen=True, kw_only=True):
    """A page of a list: at most ``limit`` rows after the first ``offset``, or from ``cursor``.

    Lists with another kind of cursor redeclare it.
    """

    limit: Int32 = None
    offset: Int32 = None
    cursor: Annotated[
        Any, Converter(parse_page_cursor, {"type": "string", "pattern": CURSOR_FORM})
    ] = None

    def filters(self) -> dict[str, Any]:
        """Return the query parameters for the page, with its block and its order if it has them."""
        names = ("mc_seqno", "descending", "limit", "offset")
        return {name: getattr(self, name) for name in names if hasattr(self, name)}


class SortedPage(Page, frozen=True, kw_only=True):
    """A page of a list sorted in either direction."""

    sort: Sort = None

    @property
    def descending(self) -> bool:
        """Newest first unless ``sort`` is ascending."""
        return self.sort != "asc"


class SpanPage(SortedPage, frozen=True, kw_only=True):
    """A page of rows within a span of time and of logical time."""

    start_utime: Utime = None
    end_utime: Utime = None
    start_lt: Lt = None
    end_lt: Lt = None

    @property
    def by_time(self) -> bool:
        """Whether the page is ordered by time, not by logical time."""
        return (self.start_utime, self.end_utime) != (None, None)

    def filters(self) -> dict[str, Any]:
        """Return the query parameters for the page and its spans."""
        names = ("start_utime", "end_utime", "start_lt", "end_lt", "descending")
        listed = {name: getattr(self, name) for name in names}
        return listed | {"limit": self.limit or 0, "offset": self.offset or 0}

    @property
    def spans(self) -> tuple[Bounds, Bounds]:
        """The bounds of time and of logical time."""
        return (self.start_utime, self.end_utime), (self.start_lt, self.end_lt)

    def check_covered(self, reader: Reader, *, may_lie_in_gap: bool = True) -> None:
        """Refuse an empty result that missing blocks may have caused.

        Raises NotCovered if the lake does not cover the spans at all, or the requested rows
        ``may_lie_in_gap``.
        """
        utime, lt = self.spans
        check_spans(reader, utime, lt)
        if may_lie_in_gap and not self.offset:
            check_no_gap(reader, utime=utime, lt=lt)


P = TypeVar("P", bound=Query)


def operation(
    path: str, kind: type[P], answer: Callable[[Call, P], Any], *, lasting: bool = True
) -> HTTPRouteHandler:
    """Return the route that answers GET requests, with parameters of a kind, on ``path``.

    A ``lasting`` response depends only on the snapshot and the request, so it is cached until the
    next commit. Such an operation waits only for its reader, and a small one needs no thread.
    """
    known = converters_of(kind)
    # Lists with another kind of cursor set the header themselves.
    pages = "cursor" in known and known["cursor"].parse is parse_page_cursor

    def handle(request: ApiRequest) -> Written:
        settings: HttpSettings = request.app.state["settings"].http
        arguments = read_known(request, known)
        query = check_page(read_query(kind, arguments), settings)
        cursor = query.cursor if isinstance(query, Page) else None
        if isinstance(cursor, PageCursor) and arguments.last("snapshot") is None:
            # Every page of a list is served from the snapshot of its first page.
            arguments.values["snapshot"] = [str(cursor.snapshot)]
        call = open_call(request, arguments)
        if gaps := describe_gaps(call.reader.snapshot.ranges):
            call.warn(gaps)
        if call.reader.snapshot.state.last_pruned and isinstance(query, SpanPage):
            check_spans(call.reader, *query.spans)  # a few older transactions are kept
        answered = answer(call, query)
        rows = list_rows(answered) if pages else None
        if rows is not None and isinstance(query, Page) and query.limit:
            following = PageCursor(call.reader.snapshot.number, (query.offset or 0) + query.limit)
            if len(rows) >= query.limit:
                call.headers[CURSOR] = str(following)
        form = choose_format(read_accept(request.scope["headers"]))
        form = form and refine_format(form, arguments)
        body = write_answer(answered, form, settings)
        if lasting and not call.passing:
            keep_answer(request)
        return body

    handle.__doc__ = answer.__doc__
    route = HTTPRouteHandler(
        path, http_method=["GET", "HEAD"], opt={"query": kind, "answer": answer}
    )
    return route(in_queue(handle, unwaiting=lasting))


def write_answer(answered: object, form: str | None, settings: HttpSettings) -> Written:
    """Return a response, not too large, in a format; objects without a list are JSON."""
    table = tabulate(answered) if form in WRITERS else None
    if form is None or table is None:
        form, body = JSON, msgspec.json.encode(answered)
    else:
        body = WRITERS[form](table.to_reader())
    kind = MEDIA_TYPES[CSV if form == SAFE_CSV else form]
    return answer_body(body, settings, kind, (b"vary", b"Accept"))


def check_page(query: P, settings: HttpSettings) -> P:
    """Set defaults of limit, offset and sort, and check them, if the operation has them.

    Raises RequestInvalid if the limit is too large, or the sort order unknown.
    """
    if isinstance(query, SortedPage) and query.sort == "":
        raise RequestInvalid("wrong value for sort parameter")
    if not isinstance(query, Page):
        return query
    limit = DEFAULT_LIMIT if query.limit is None else max(1, query.limit)
    if limit > settings.max_limit:
        raise RequestInvalid(f"limit is not allowed: {limit} > {settings.max_limit}")
    offset = max(0, query.offset or 0)
    if isinstance(query.cursor, PageCursor):
        offset = query.cursor.offset
    return msgspec.structs.replace(query, limit=limit, offset=offset)


R = TypeVar("R", bound=msgspec.Struct)


def read_body(body: bytes, kind: type[R], required: Sequence[str] = ()) -> R:
    """Return the object of a body; a field that is null counts as absent.

    Clients write null for omitted fields, and TON Center accepts that. Raises RequestInvalid if the
    body is not such an object, CredentialMissing if a required field is absent or empty.
    """
    try:
        fields = msgspec.json.decode(body)
        if isinstance(fields, dict):
            fields = {name: value for name, value in fields.items() if value is not None}
        asked = msgspec.convert(fields, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestInvalid(f"failed to parse the request: {error}") from error
    for name in required:
        if not getattr(asked, name):
            raise CredentialMissing(f"{name} is required")
    return asked


class Posted(NamedTuple):
    """A request with a body: the settings, and the call, which is opened when needed."""

    settings: HttpSettings
    open: Callable[[], Call]


def posted(
    path: str,
    kind: type[R],
    answer: Callable[[Posted, R], Any],
    required: Sequence[str] = (),
    **described: object,
) -> HTTPRouteHandler:
    """Return the route that answers POST requests, with a body of a kind, on ``path``.

    ``described`` are keys of the route for the OpenAPI document.
    """

    def handle(request: ApiRequest, body: RawBody) -> Written:
        settings: HttpSettings = request.app.state.settings.http
        arguments = read_known(request, {})
        asked = read_body(body, kind, required)
        answered = answer(Posted(settings, lambda: open_call(request, arguments)), asked)
        return answer_body(msgspec.json.encode(answered), settings)

    handle.__doc__ = answer.__doc__
    route = HTTPRouteHandler(path, http_method="POST", status_code=200, opt=described)
    return route(in_queue(handle))
