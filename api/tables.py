"""``/api/tables``: returns rows of user-defined tables, filtered and in pages."""

import re
from collections.abc import Iterator
from math import inf

import duckdb
import msgspec
from litestar import Response
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler

from tonlake.api.errors import RequestInvalid
from tonlake.api.http.admission import in_queue
from tonlake.api.request.call import (
    ApiRequest,
    Arguments,
    Written,
    answer_body,
    check_size,
    read_arguments,
    refine_format,
)
from tonlake.api.request.table_format import JSON, MEDIA_TYPES, choose_format, read_accept
from tonlake.api.settings import Settings
from tonlake.api.sql.worker import write_answer
from tonlake.lake.duck.own import (
    COMPARISONS,
    OwnState,
    TableFilter,
    ask_table,
    describe_own_tables,
    read_definitions,
    read_own_state,
)
from tonlake.lake.errors import QueryError
from tonlake.queries.errors import QueryTimeout

PREFIX = "/api/tables"
USUAL_ROWS, MAX_ROWS, MAX_CONDITIONS = 100, 1000, 100
_RESERVED = frozenset({"limit", "offset", "sort", "format", "api_key", "csv_safe"})
_NUMBER = re.compile(r"[0-9]{1,9}")


def list_tables(request: ApiRequest) -> Written:
    """List the user-defined tables with statement, columns, row count and last commit."""
    lake_dir = request.app.state.lake_dir
    settings: Settings = request.app.state.settings
    body = msgspec.json.encode({"tables": describe_own_tables(lake_dir)})
    return answer_body(body, settings.http)


def answer_table(request: ApiRequest) -> Response[bytes]:
    """Return a page of a user-defined table.

    ``column=value`` and ``column.lt`` (``lte``, ``gt``, ``gte``, ``ne``) filter, with bytes as hex;
    ``sort=column,-column``, ``limit`` and ``offset`` select the page; ``format`` or the Accept
    header selects JSON, CSV, Arrow or Parquet.
    """
    settings: Settings = request.app.state.settings
    lake_dir, name = request.app.state.lake_dir, request.path_params["name"]
    if name not in read_definitions(lake_dir):
        raise NotFoundException(f"the lake has no user-defined table {name[:80]}")
    state = read_own_state(lake_dir, name)
    arguments = read_arguments(request)
    form = arguments.last("format") or choose_format(read_accept(request.scope["headers"])) or JSON
    if form not in MEDIA_TYPES:
        raise RequestInvalid(f"format is one of {', '.join(MEDIA_TYPES)}, not {form[:80]!r}")
    limit = _read_number(arguments, "limit", USUAL_ROWS, MAX_ROWS)
    offset = _read_number(arguments, "offset", 0, 10**9)
    filters, order = list(_read_filters(arguments, state)), list(_read_order(arguments, state))
    if max(len(filters), len(order)) > MAX_CONDITIONS:
        raise RequestInvalid(f"at most {MAX_CONDITIONS} filters and columns of sort are possible")
    page, limit_ms = (limit + 1, offset), settings.http.query_timeout_ms
    limit_s = limit_ms / 1000 if limit_ms else inf
    try:
        found = ask_table(lake_dir, settings.lake, name, state, filters, order, page, limit_s)
    except duckdb.InterruptException as error:
        raise QueryTimeout(f"table {name} took longer than {limit_ms} ms: filter it") from error
    except QueryError as error:
        raise RequestInvalid(str(error)) from error
    complete = found.num_rows <= limit
    refined = refine_format(form, arguments)
    body = write_answer(found.slice(0, limit), refined, state.commit, complete=complete)
    check_size(body, settings.http)
    headers = {"X-Tonlake-Rows": str(min(found.num_rows, limit)), "Vary": "Accept"}
    if state.error:
        headers["X-Tonlake-Warning"] = f"the table is as of commit {state.commit}: it fails since"
    return Response(body, media_type=MEDIA_TYPES[form], headers=headers)


def _read_number(arguments: Arguments, name: str, usual: int, most: int) -> int:
    text = arguments.last(name)
    if text is None:
        return usual
    if not _NUMBER.fullmatch(text) or int(text) > most:
        raise RequestInvalid(f"{name} is a number from 0 to {most:,}, not {text[:80]!r}")
    return int(text)


def _read_filters(arguments: Arguments, state: OwnState) -> Iterator[TableFilter]:
    columns = {column.name for column in state.columns}
    for name, values in arguments.values.items():
        if name in _RESERVED and name not in columns:
            continue
        column, _, comparison = (name, "", "") if name in columns else name.rpartition(".")
        if column not in columns or comparison not in COMPARISONS:
            raise RequestInvalid(
                f"{name[:80]} is not a filter: use a column ({', '.join(sorted(columns))}), "
                "alone or with .ne, .lt, .lte, .gt or .gte"
            )
        yield from (TableFilter(column, COMPARISONS[comparison], value) for value in values)


def _read_order(arguments: Arguments, state: OwnState) -> Iterator[tuple[str, bool]]:
    columns = {column.name for column in state.columns}
    for text in filter(None, (arguments.last("sort") or "").split(",")):
        if text.removeprefix("-") not in columns:
            raise RequestInvalid(f"sort takes columns of the table, not {text[:80]!r}")
        yield text.removeprefix("-"), text.startswith("-")


routes = [
    HTTPRouteHandler(PREFIX, http_method=["GET", "HEAD"])(in_queue(list_tables)),
    HTTPRouteHandler(PREFIX + "/{name:str}", http_method=["GET", "HEAD"])(in_queue(answer_table)),
]
