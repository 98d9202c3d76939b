"""Turns the named queries of ``everyday/`` into examples for the SQL page."""

from __future__ import annotations

import re
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from tonlake.queries.loader import REQUIRED, load_queries

if TYPE_CHECKING:
    from tonlake.queries.loader import Chart, Parameter, Query

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


def _read_example(query: Query) -> Example:
    title = query.doc.split(". ")[0].removesuffix(".")
    text = write_statement(query)
    fields = {"query": text, "format": "html", **_list_fields(query.chart)}
    return Example(title, text, "/sql?" + urlencode(fields, doseq=True))


def _list_fields(chart: Chart | None) -> dict[str, str | tuple[str, ...]]:
    """Return the form fields that select ``chart``, or no chart for None."""
    if chart is None:
        return {"chart": "none"}
    return {"chart": chart.kind, "x": chart.x, "y": chart.y, "by": chart.by or ""}


def write_statement(query: Query) -> str:
    """Return a statement with each parameter replaced by its default and a comment with its name.

    The descriptions of the parameters remain as a comment above the statement.
    """
    lines = query.sql.strip().splitlines()
    end = next(at for at, line in enumerate(lines) if not line.startswith("--"))
    meaning = takewhile(lambda line: not line.startswith(_NO_MEANING), lines[:end])
    head = "\n".join(meaning).rstrip("-\n ")
    statement = _PARAMETER.sub(
        lambda found: _write_default(query.parameters[found[1]]), "\n".join(lines[end:])
    )
    return f"{head}\n{statement}"


def _write_default(parameter: Parameter) -> str:
    return f"/* {parameter.name} */ {msgspec.json.encode(parameter.default).decode()}"
