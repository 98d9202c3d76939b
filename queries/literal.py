"""A named query with its values in it: for a service that takes nothing but a statement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tonlake.lake.duck.statement import quote
from tonlake.queries.errors import ParameterMismatch
from tonlake.queries.loader import REQUIRED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.queries.loader import Query

_TOKEN = re.compile(r"'(?:[^']|'')*'|--[^\n]*|\$(?P<name>[a-z][a-z0-9_]*)")
"""What may hold a dollar sign and means none, and a parameter."""


def fill_query(query: Query, values: Mapping[str, object]) -> str:
    """Return the statement of a query with a literal for each parameter.

    Raises:
        ParameterMismatch: a value is missing.
    """
    filled = {**query.defaults, **values}
    lacking = [name for name, value in filled.items() if value is REQUIRED]
    if lacking:
        raise ParameterMismatch(f"query {query.name} needs {lacking[0]}")

    def fill(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return match[0]
        return f"({write_literal(filled[name])})::{query.parameters[name].type}"

    return _TOKEN.sub(fill, query.sql)


def write_literal(value: object) -> str:
    """Return a value of a parameter as DuckDB reads it."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"from_hex({quote(value.hex())})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write_literal, value))}]"
    return quote(value) if isinstance(value, str) else str(value).lower()
