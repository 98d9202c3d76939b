"""The page of ``/sql``: an editor beside the schema, examples, and a result with its chart."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec

from tonlake.api.errors import status_of
from tonlake.api.explorer.frame import HEADERS, Shown, render
from tonlake.api.request.table_format import ARROW, CSV, JSON, PARQUET
from tonlake.api.sql.catalogue import list_macros, list_own_views, list_views
from tonlake.api.sql.cell import write_row
from tonlake.api.sql.chart import KINDS, Chart, ChartUnfit, Choice, draw_chart, is_number
from tonlake.api.sql.example import list_examples

if TYPE_CHECKING:
    from litestar import Response

    from tonlake.api.request.call import ApiRequest
    from tonlake.api.sql.pool import SqlPool
    from tonlake.lake.log.snapshot import Snapshot

TEMPLATE = "sql.html"
SHOWN_ROWS = 200
DRAWN_ROWS = 2000
"""Rows of the table, and of the chart; files have all of them."""


class Header(msgspec.Struct, frozen=True):
    """A column of a result."""

    name: str
    type: str

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return is_number(self.type)


class Result(msgspec.Struct, frozen=True):
    """The JSON answer to a statement, read again."""

    columns: list[Header]
    rows: list[list[Any]]
    row_count: int
    complete: bool


def render_page(
    request: ApiRequest, shown: Shown, snapshot: Snapshot | None = None
) -> Response[bytes]:
    """Return the page; the editor alone may add styles to it, by a number used once."""
    own = list_own_views(request.app.state.lake_dir)
    shown.values["views"] = [*([("Own tables", own)] if own else []), *list_views().items()]
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
    """Return the page without a result: to begin with, or with what went wrong.

    Args:
        query: What stands in the editor.
        signatures: What stands beside it.
        notice: Why it was not run.
        error: What running it raised.
    """
    status = 200 if error is None else status_of(error)
    values = _list_values(query, signatures) | {
        "notice": notice,
        "error": None if error is None else str(error),
    }
    return Shown(TEMPLATE, "SQL", values, status)


def show_result(
    pool: SqlPool, snapshot: Snapshot, query: str, signatures: tuple[str, ...], choice: Choice
) -> Shown:
    """Return the page with the answer to a statement, and the chart that was chosen.

    Raises:
        ApiError: there is none.
    """
    answer = pool.run(snapshot, query, JSON, DRAWN_ROWS, signatures)
    given = {"query": query} | ({"signature": signatures} if signatures else {})
    result = msgspec.json.decode(answer.body, type=Result)
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
            (form, "/sql?" + urlencode(given | {"format": form}, doseq=True))
            for form in (CSV, JSON, ARROW, PARQUET)
        ],
    }
    return Shown(TEMPLATE, "SQL", values)


def _draw(result: Result, choice: Choice) -> tuple[Chart | None, str]:
    """Return the chart, or why there is none; one that was not chosen needs no reason."""
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
