"""The frame of every operation of version 3: read arguments, ask, render, answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from litestar import Response  # noqa: TC002 - Litestar reads the annotations
from litestar.handlers import HTTPRouteHandler

from api.call import (
    SHARED_PARAMETERS,
    ApiRequest,
    Call,
    answer_json,
    keep_answer,
    note_warnings,
    open_call,
    read_arguments,
)
from api.errors import RequestInvalid
from api.params import Int32, Query, Sort, converters_of, read_query
from api.v3.coverage import describe_gaps

if TYPE_CHECKING:
    from collections.abc import Callable

    from lake.settings import Settings


class Page(Query, frozen=True, kw_only=True):
    """Rows of a list to give: at most ``limit`` after the first ``offset``."""

    limit: Int32 = None
    offset: Int32 = None


class SortedPage(Page, frozen=True, kw_only=True):
    """A page of a list in one of two directions."""

    sort: Sort = None

    @property
    def descending(self) -> bool:
        """Newest first, unless told otherwise."""
        return self.sort != "asc"


P = TypeVar("P", bound=Query)


def operation(
    path: str, kind: type[P], answer: Callable[[Call, P], Any], *, lasting: bool = True
) -> HTTPRouteHandler:
    """Return the route that answers GET requests on ``path``.

    Args:
        path: Path below the version's prefix. One alone: Litestar wraps a handler in a thread once
            for each path, and the second wrapping breaks it.
        kind: Struct of the parameters it takes.
        answer: Asks the lake and returns what is to be written as JSON.
        lasting: Whether the answer follows from the snapshot and the request alone, so that it may
            be sent again until the next commit.
    """
    known = converters_of(kind)

    def handle(request: ApiRequest) -> Response[bytes]:
        settings: Settings = request.app.state.settings
        arguments = read_arguments(request)
        note_warnings(request, arguments.warnings(known, SHARED_PARAMETERS), settings)
        query = check_page(read_query(kind, arguments), settings)
        call = open_call(request, arguments)
        if gaps := describe_gaps(call.reader.snapshot.ranges):
            call.warn(gaps)
        body = answer_json(msgspec.json.encode(answer(call, query)), settings)
        if lasting:
            keep_answer(request)
        return body

    handle.__doc__ = answer.__doc__
    route = HTTPRouteHandler(
        path,
        http_method=["GET", "HEAD"],
        sync_to_thread=True,
        opt={"query": kind, "answer": answer},
    )
    return route(handle)


def check_page(query: P, settings: Settings) -> P:
    """Complete and check limit, offset and sort, where the operation has them.

    Raises:
        RequestInvalid: limit above the most allowed, or an unknown sort.
    """
    if isinstance(query, SortedPage) and query.sort == "":
        raise RequestInvalid("wrong value for sort parameter")
    if not isinstance(query, Page):
        return query
    limit = settings.v3_default_limit if query.limit is None else max(1, query.limit)
    if limit > settings.v3_max_limit:
        raise RequestInvalid(f"limit is not allowed: {limit} > {settings.v3_max_limit}")
    return msgspec.structs.replace(query, limit=limit, offset=max(0, query.offset or 0))
