"""Loads the named queries: one statement per file; a header declares parameters and columns.

A file begins with comment lines: the purpose of the query; one line per parameter,
``-- $name type [= default]  meaning``; for an everyday question, ``-- chart: kind x=column
y=columns [by=column]``; and ``-- returns: columns``. The statement follows. The loader rejects a
file whose header and statement disagree, so the header can be trusted.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import dropwhile, takewhile
from typing import Any

import duckdb
import msgspec

from tonlake.lake.duck.connection import list_views
from tonlake.lake.schema.dictionary import VIEWS
from tonlake.queries.errors import QueryMalformed, QueryUnknown

TYPES = frozenset(
    {
        *("boolean", "integer", "bigint", "text", "blob", "address", "date", "timestamp"),
        *("integer[]", "bigint[]", "text[]", "blob[]"),
    }
)
"""Types of parameters; an address is text in raw or friendly form."""

REQUIRED = msgspec.UNSET
EVERYDAY = "everyday/"
"""Folder of the everyday questions; none of them has a required parameter."""

_PARAMETER = re.compile(
    r"^-- \$(?P<name>[a-z][a-z0-9_]*) +(?P<type>[a-z]+(?:\[\])?)"
    r"(?: += (?P<default>null|true|false|\[\]|-?[0-9]+))?(?: +(?P<doc>[^ =].*))?$"
)
_RETURNS = "-- returns:"
_CHART_START = "-- chart:"
_CHART = re.compile(
    r"-- chart: (?P<kind>line|bar) x=(?P<x>\w+) y=(?P<y>\w+(?:,\w+)*)(?: by=(?P<by>\w+))?"
)
_DEFAULTS: dict[str | None, Any] = {
    None: REQUIRED,
    "null": None,
    "true": True,
    "false": False,
    "[]": [],
}


class Parameter(msgspec.Struct, frozen=True):
    """One ``$name`` of a query; ``default`` is ``REQUIRED`` if there is none."""

    name: str
    type: str
    default: Any
    doc: str


class Chart(msgspec.Struct, frozen=True):
    """How to draw rows: a series for each column of ``y``, or of the first for each ``by``."""

    kind: str = "auto"
    x: str = ""
    y: tuple[str, ...] = ()
    by: str | None = None


class NamedQuery(msgspec.Struct, frozen=True):
    """A statement: ``name`` is its path, such as ``v3/blocks``; a default may be ``REQUIRED``."""

    name: str
    sql: str
    parameters: Mapping[str, Parameter]
    defaults: Mapping[str, Any]
    doc: str
    returns: str
    chart: Chart | None = None


_DUCKDB_ALONE = ("jaro_winkler_similarity", "ton_friendly")


def needs_duckdb(query: NamedQuery) -> bool:
    """Whether a query reads views for people, or calls a function that Spark does not have."""
    return (
        query.name.startswith(EVERYDAY)
        or not VIEWS.keys().isdisjoint(list_views(query.sql))
        or any(function in query.sql for function in _DUCKDB_ALONE)
    )


@cache
def load_queries() -> Mapping[str, NamedQuery]:
    """Return every query of this package by name."""
    return {name: parse_query(name, text) for name, text in _walk(files("tonlake.queries"), "")}


def find_query(name: str) -> NamedQuery:
    """Return a query by its name, or a unique part after the last slash; everyday ones first."""
    queries = load_queries()
    for full in (name, f"everyday/{name}"):
        if full in queries:
            return queries[full]
    found = [full for full in queries if full.rpartition("/")[2] == name]
    if len(found) == 1:
        return queries[found[0]]
    if found:
        raise QueryUnknown(f"several queries are called {name!r}: {', '.join(found)}")
    last = {full.rpartition("/")[2]: full for full in queries}
    near = [last.get(each, each) for each in get_close_matches(name, [*queries, *last], n=3)]
    hint = f"; did you mean {', '.join(dict.fromkeys(near))}?" if near else ""
    raise QueryUnknown(f"no query is called {name[:80]!r}{hint} (tonlake query --list)")


def parse_query(name: str, text: str) -> NamedQuery:
    """Parse a file, and check that header and statement agree."""
    lines = takewhile(lambda line: line.startswith("--"), text.splitlines())
    header = [line.rstrip() for line in lines]
    parameters = {item.name: item for item in _read_parameters(name, header)}
    doc, returns = _read_purpose(header), _read_returns(header)
    if not doc or not returns:
        raise QueryMalformed(f"queries/{name}.sql: needs a purpose and one 'returns:' line on top")
    _check_statement(name, text, frozenset(parameters))
    defaults = {key: item.default for key, item in parameters.items()}
    return NamedQuery(
        name=name,
        sql=text,
        parameters=parameters,
        defaults=defaults,
        doc=doc,
        returns=returns,
        chart=_read_chart(name, header),
    )


def _check_statement(name: str, text: str, declared: frozenset[str]) -> None:
    try:
        statements = duckdb.extract_statements(text)
    except duckdb.Error as error:
        raise QueryMalformed(f"queries/{name}.sql: does not parse: {error}") from error
    if len(statements) != 1:
        raise QueryMalformed(f"queries/{name}.sql: {len(statements)} statements, must be one")
    used = statements[0].named_parameters
    if used != declared:
        odd = ", ".join(sorted(used ^ declared))
        raise QueryMalformed(f"queries/{name}.sql: header and statement differ in: {odd}")


def _read_parameters(name: str, header: list[str]) -> Iterator[Parameter]:
    for line in header:
        if not line.startswith("-- $"):
            continue
        match = _PARAMETER.match(line)
        if match is None or match["type"] not in TYPES:
            raise QueryMalformed(f"queries/{name}.sql: unreadable parameter line: {line}")
        written = match["default"]
        default = _DEFAULTS[written] if written in _DEFAULTS else int(written)
        yield Parameter(match["name"], match["type"], default, match["doc"] or "")


def _read_purpose(header: list[str]) -> str:
    """Return the comment lines above the parameters."""
    ends = ("-- $", _CHART_START, _RETURNS)
    lines = takewhile(lambda line: not line.startswith(ends), header)
    return " ".join(filter(None, (line[2:].strip() for line in lines)))


def _read_chart(name: str, header: list[str]) -> Chart | None:
    for line in header:
        if line.startswith(_CHART_START):
            match = _CHART.fullmatch(line)
            if match is None:
                raise QueryMalformed(f"queries/{name}.sql: unreadable chart line: {line}")
            return Chart(match["kind"], match["x"], tuple(match["y"].split(",")), match["by"])
    return None


def _read_returns(header: list[str]) -> str:
    """Return the header from ``returns:`` to its end."""
    lines = dropwhile(lambda line: not line.startswith(_RETURNS), header)
    return " ".join(line[2:].strip() for line in lines).removeprefix("returns:").strip()


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".sql"):
            yield prefix + entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8")
