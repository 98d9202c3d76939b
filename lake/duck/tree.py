"""Parses a statement into the nodes of its tree, as DuckDB's JSON describes them.

Filters on the text of an address get one on the account id: files have bounds of ids, not of texts.
"""

import re
from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.lake.schema.dictionary import VIEWS

if TYPE_CHECKING:
    import duckdb

Node = dict[str, Any]

RELATIONS = ("BASE_TABLE", "TABLE_FUNCTION")
"""Types of nodes that name what is read."""

_PARSED = "select json_serialize_sql($query::varchar)"
WORD = re.compile(r"\w+")
EXPLAIN = re.compile(r"\A\s*explain\s+(analyze\s+)?", re.IGNORECASE)

_KEPT_CHARACTERS = 1 << 17
_kept: dict[str, list[Node]] = {}
"""Nodes of the statements parsed last, which callers share: some 40 bytes a character."""


def list_nodes(connection: "duckdb.DuckDBPyConnection", statement: str) -> list[Node]:
    """Return all nodes of a query, or of the one that is explained; of others, an ``error``."""
    nodes = _kept.get(statement)
    if nodes is None:
        (parsed,) = connection.execute(_PARSED, {"query": EXPLAIN.sub("", statement)}).fetchall()[0]
        nodes = _kept[statement] = list(_walk(msgspec.json.decode(parsed)))
        if sum(map(len, _kept)) > _KEPT_CHARACTERS:
            _kept.clear()
    return nodes


def _walk(root: object) -> Iterator[Node]:
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield node
            todo += node.values()
        elif isinstance(node, list):
            todo += node


def list_filters(nodes: list[Node]) -> Iterator[tuple[Node, str, list[str], int]]:
    """Yield conditions ``column = 'text'`` or ``in (…)`` that hold for each row of a table.

    These are table, column, texts, and where each begins; of queries that just join tables.
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
        for column, texts in _list_equal(node["where_clause"]):
            *alias, compared = map(str.lower, column["column_names"])
            found = [each for name, each in named.items() if alias in ([], [name])]
            if len(found) == 1 and found[0]["table_name"].lower() not in made:
                yield found[0], compared, texts, column["query_location"]


def _list_equal(condition: Node) -> Iterator[tuple[Node, list[str]]]:
    for each in condition["children"] if condition["type"] == "CONJUNCTION_AND" else ():
        yield from _list_equal(each)
    if condition["type"] in ("COMPARE_EQUAL", "COMPARE_IN"):
        column, *values = condition.get("children") or (condition["left"], condition["right"])
        if column["class"] == "COLUMN_REF" and all(each["class"] == "CONSTANT" for each in values):
            yield column, [each["literal"].get("text", "") for each in values]


_ADDRESS = re.compile(r"-?[0-9]{1,9}:([0-9A-F]{64})")
_COLUMN = re.compile(rb"""((?:[\w"]+\.)?)[\w"]+\s*(=|in\b)""", re.IGNORECASE)


def filter_accounts(connection: "duckdb.DuckDBPyConnection", query: str) -> str:
    """Return a query that compares the account id, too, where it compares an address.

    These are conditions ``address = '0:…'`` and ``in ('0:…', …)`` of WHERE, all of which must hold,
    on columns of views.
    """
    if not _ADDRESS.search(query):
        return query
    text = query.encode()
    begin = len(text) - len(EXPLAIN.sub("", query).encode())
    filters = list_filters(list_nodes(connection, query))
    for table, name, addresses, at in sorted(filters, key=itemgetter(-1), reverse=True):
        view, key = table["table_name"].lower(), "account" if name == "address" else f"{name}_id"
        known = {each.name for each in VIEWS[view].columns} if view in VIEWS else set()
        raw = [found[1] for each in addresses if (found := _ADDRESS.fullmatch(each))]
        written = _COLUMN.match(text, begin + at)
        if written and known >= {name, key} and len(raw) == len(addresses):
            ids = ", ".join(f"unhex('{each}')" for each in raw)
            same = f"= {ids}" if len(raw) == 1 else f"in ({ids})"  # `=` passes joins and groups
            added = f"{written[1].decode()}{key} {same} and ".encode()
            text = text[: begin + at] + added + text[begin + at :]
    return text.decode()
