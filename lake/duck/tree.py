"""Parses a statement into the nodes of its tree, as DuckDB's JSON describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import duckdb

Node = dict[str, Any]

RELATIONS = ("BASE_TABLE", "TABLE_FUNCTION")
"""Types of nodes that name what is read."""

_PARSED = "select json_serialize_sql($query::varchar)"
_EXPLAIN = re.compile(r"\s*explain\s+(analyze\s+)?", re.IGNORECASE)


def list_nodes(connection: duckdb.DuckDBPyConnection, statement: str) -> list[Node]:
    """Return all nodes of a query, or of the one that is explained; of others, an ``error``."""
    query = _EXPLAIN.sub("", statement, count=1) if _EXPLAIN.match(statement) else statement
    (parsed,) = connection.execute(_PARSED, {"query": query}).fetchall()[0]
    return list(_walk(msgspec.json.decode(parsed)))


def _walk(root: object) -> Iterator[Node]:
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield node
            todo += node.values()
        elif isinstance(node, list):
            todo += node
