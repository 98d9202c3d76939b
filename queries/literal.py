"""Inlines parameter values into a named query, for services that accept only a statement."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

from tonlake.lake.duck.statement import quote
from tonlake.queries.errors import ParameterMismatch
from tonlake.queries.loader import REQUIRED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.queries.loader import Query

_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$"""
    r"|\$(?P<name>[A-Za-z]\w*)",
    re.DOTALL,
)
"""Tokens that may contain a dollar sign (strings, names, comments), and parameters."""


def fill_query(query: Query, values: Mapping[str, object]) -> str:
    """Return the statement of a query with a literal for each parameter.

    Raises:
        ParameterMismatch: a value is missing.
    """
    filled = {**query.defaults, **values}
    lacking = [name for name, value in filled.items() if value is REQUIRED]
    if lacking:
        raise ParameterMismatch(f"query {query.name} needs {lacking[0]}")

    written = {
        name: f"({write_literal(value)})::{query.parameters[name].type}"
        for name, value in filled.items()
    }
    return _fill(query.sql, written)


def put_values(statement: str, values: Mapping[str, object]) -> str:
    """Return a statement with a literal for each parameter that has a value."""
    return _fill(statement, {name: write_literal(value) for name, value in values.items()})


def _fill(statement: str, written: Mapping[str, str]) -> str:
    return _TOKEN.sub(lambda match: written.get(match["name"] or "", match[0]), statement)


def write_literal(value: object) -> str:
    """Return a parameter value as a DuckDB literal."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"from_hex({quote(value.hex())})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write_literal, value))}]"
    if isinstance(value, str | date):  # a datetime is a date
        return quote(str(value))
    return str(value).lower()
