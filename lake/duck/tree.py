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
EXPLAIN = re.compile(r"\s*explain\s+(analyze\s+)?", re.IGNORECASE)


def list_nodes(connection: duckdb.DuckDBPyConnection, statement: str) -> list[Node]:
    """Return all nodes of a query, or of the one that is explained; of others, an ``error``."""
    query = EXPLAIN.sub("", statement, count=1) if EXPLAIN.match(statement) else statement
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


def list_filters(nodes: list[Node]) -> Iterator[tuple[Node, str, str, int]]:
    """Yield conditions ``column = 'text'`` that hold for each row of a table that a query reads.

    These are table, column, text, and where the condition begins; of queries that just join tables.
    """
    made = {node["key"].lower() for node in nodes if "key" in node}
    for node in nodes:
        if node.get("type") != "SELECT_NODE" or not node["where_clause"]:
            continue
        read = (each for each in _walk(node["from_table"]) if "sample" in each)
        tables = [each for each in read if each["type"] != "JOIN"]
        if any(each["type"] != "BASE_TABLE" or each["column_name_alias"] for each in tables):
            continue
        named = {(each["alias"] or each["table_name"]).lower(): each for each in tables}
        for column, text in _list_equal(node["where_clause"]):
            *alias, compared = map(str.lower, column["column_names"])
            found = [each for name, each in named.items() if alias in ([], [name])]
            if len(found) == 1 and found[0]["table_name"].lower() not in made:
                yield found[0], compared, text, column["query_location"]


def _list_equal(condition: Node) -> Iterator[tuple[Node, str]]:
    for each in condition["children"] if condition["type"] == "CONJUNCTION_AND" else ():
        yield from _list_equal(each)
    if condition["type"] == "COMPARE_EQUAL":
        column, value = condition["left"], condition["right"]
        if column["class"] == "COLUMN_REF" and value["class"] == "CONSTANT":
            yield column, value["literal"].get("text", "")
