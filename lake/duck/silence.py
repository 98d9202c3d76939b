"""Finds what would make a statement answer too little without an error.

DuckDB compares any two texts or numbers, and takes a text for bytes: a friendly address where the
lake has raw ones, a misspelt kind, the hex digits of a hash, or an op-code without its sign equal
no row. And a lake that begins in the
middle of the chain does not know all accounts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.lake.account import normalize_address, read_shard
from tonlake.lake.duck.connection import ALL_VIEWS, VIEWED_TABLES, list_views, read_bases
from tonlake.lake.errors import QueryError
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.schema.column import Column
from tonlake.lake.schema.view import VIEWS

if TYPE_CHECKING:
    import duckdb

Node = dict[str, Any]

_EQUALITIES = {"COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_IN", "COMPARE_NOT_IN"}
_EQUALITIES |= {"COMPARE_DISTINCT_FROM", "COMPARE_NOT_DISTINCT_FROM"}
_LISTS, _LIST_HAS = ("list_value", "unnest"), ("contains", "list_contains", "list_has")
_PREFIXED = ("~~", "starts_with", "prefix", "^@")
_TEXT_TYPES = ("varchar", "text", "string")
_RELATIONS = ("BASE_TABLE", "TABLE_FUNCTION")
_ROWS_OF_A_TABLE = ("latest", "as_of", "states_as_of")
"""Macros whose first argument names the table."""
_PARSED = "select json_serialize_sql($query::varchar)"
_EXPLAIN = re.compile(r"\s*explain\s+(analyze\s+)?", re.IGNORECASE)
_WILDCARD = re.compile("[%_]")
_RAW_BEGINNING = re.compile("-?[0-9]*|-?[0-9]+:[0-9A-F]{0,64}")
_SHARD_DIGITS = re.compile("[0-9a-fA-F]{16}")
_LARGE = re.compile("[0-9]{10}")
"""An integer that may be too large for a column."""
_BITS = {"int8": 8, "int32": 32, "int64": 64}
_WORD = re.compile(r"\w+")
_HEX_DIGITS, _BASE64_DIGITS = 64, (43, 44)
_OF_ALL_ACCOUNTS = ("latest_", "v_accounts", "v_balances", "v_jettons", "balances_", "jetton_hold")
"""Beginnings of the names of views that answer for all accounts, if the lake knows them."""


def check_literals(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, object]
) -> None:
    """Raise QueryError if a column, by its own name, is compared with a value it never holds."""
    if "'" not in query and not parameters and not _LARGE.search(query):
        return
    statement = _EXPLAIN.sub("", query, count=1) if _EXPLAIN.match(query) else query
    (parsed,) = connection.execute(_PARSED, {"query": statement}).fetchall()[0]
    nodes = list(_walk(msgspec.json.decode(parsed)))
    scope = _Scope(nodes)
    for node in nodes:
        is_prefix = node.get("function_name") in _PREFIXED
        sides = _list_sides(node)
        columns = [column for side in sides if (column := scope.find(side)) is not None]
        if node.get("function_name") in _LIST_HAS and sides[0].get("column_names"):
            columns = [column for column in columns if column.type == "texts"]
        values = [value for side in sides for value in _read_values(side, parameters)]
        for column in columns:
            for value in values:
                if isinstance(value, int):
                    _check_number(column, value)
                elif is_prefix:
                    _check_prefix(column, value)
                else:
                    _check(column, value)


def _list_sides(node: Node) -> list[Node]:
    """Return the expressions that a comparison compares; none for any other expression."""
    if node.get("type") in _EQUALITIES:
        return node.get("children") or [node["left"], node["right"]]
    if node.get("comparison_type") in _EQUALITIES:  # in, = any: a query, or a list
        query = node["subquery"]["node"]
        has_rows = query.get("from_table", {}).get("type") != "EMPTY"
        return [] if has_rows else [node["child"], *query["select_list"]]
    name = node.get("function_name")
    sides = [argument["expression"] for argument in node.get("arguments") or ()]
    is_prefix = name in _PREFIXED and sides[0].get("column_names")
    return sides if name in _LIST_HAS or is_prefix else []


def _walk(root: object) -> Iterator[Node]:
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield node
            todo += node.values()
        elif isinstance(node, list):
            todo += node


class _Scope:
    """The tables and views that a statement reads, by their names in it."""

    def __init__(self, nodes: list[Node]) -> None:
        self._read: dict[str, str] = {}
        named = {
            each["key"].lower()
            for node in nodes
            if "cte_map" in node
            for each in node["cte_map"]["map"]
        }
        for node in nodes:
            if node.get("type") in _RELATIONS:
                name = _name_relation(node)
                self._read[node["alias"].lower() or name] = name
        self._is_known = all(name in ALL_VIEWS or name in named for name in self._read.values())
        self._made = {
            node["alias"].lower() for node in nodes if "class" in node and node.get("alias")
        }
        self._renamed = {
            name.lower() for node in nodes for name in node.get("column_name_alias") or ()
        }

    def find(self, node: Node | None) -> Column | None:
        """Return the column that an expression names; None if it is not known for sure."""
        if node and node.get("function_name") == "unnest":  # ``= any(column)``
            node = node["arguments"][0]["expression"]
        if node is None or node.get("class") != "COLUMN_REF":
            return None
        *qualifier, name = map(str.lower, node["column_names"])
        source = self._read.get(qualifier[-1]) if qualifier else None
        is_sure = source in ALL_VIEWS or (name not in self._made and self._is_known)
        if name in self._renamed or not is_sure:
            return None
        views = [source] if source in ALL_VIEWS else [*self._read.values()]
        found = {column for view in views for column in _list_columns(view) if column.name == name}
        kinds = {(column.type, column.values, column.is_address) for column in found}
        return found.pop() if len(kinds) == 1 else None


def _name_relation(node: Node) -> str:
    """Return the table, view or macro that is read; of ``latest('wallets')`` it is ``wallets``."""
    if node["type"] == "BASE_TABLE":
        return str(node["table_name"]).lower()
    function = node["function"]
    name = str(function.get("function_name", "")).lower()
    if name in _ROWS_OF_A_TABLE and function["arguments"]:
        named = _read_values(function["arguments"][0]["expression"], {})
        name = str(named[0]) if named else name
    return name


def _list_columns(view: str) -> tuple[Column, ...]:
    """Return the columns of a view; those of its bases if it is one over the rows of tables."""
    if view in VIEWS:
        return VIEWS[view].columns
    if view in VIEWED_TABLES:
        return VIEWED_TABLES[view].columns
    return tuple(column for base in read_bases(view) for column in _list_columns(base))


def _read_values(node: Node, parameters: Mapping[str, object]) -> list[str | int]:
    """Return the texts and integers of a constant, a placeholder, or a list of them."""
    if node.get("class") == "PARAMETER":
        value = parameters.get(node["identifier"])
        values = value if isinstance(value, list | tuple) else [value]
        return [each for each in values if isinstance(each, str | int)]
    if node.get("class") == "CONSTANT":
        kind, text = node["literal"].get("kind"), node["literal"].get("text")
        return [text] if kind == "STRING" else [int(text)] if kind == "INTEGER" else []
    if node.get("class") == "CAST":
        name = str(node.get("type_expr", {}).get("type_name")).lower()
        return _read_values(node["child"], parameters) if name in _TEXT_TYPES else []
    if node.get("function_name") in _LISTS:
        parts = [argument["expression"] for argument in node["arguments"]]
        return [value for part in parts for value in _read_values(part, parameters)]
    return []


def _check_number(column: Column, number: int) -> None:
    """Refuse a number that its type cannot hold, such as an op-code or a shard without a sign."""
    bits = _BITS.get(column.type)
    if bits is not None and number >= 1 << bits - 1:
        cure = f": write {number - (1 << bits)}" if number < 1 << bits else ""
        raise QueryError(f"{column.name} holds signed numbers of {bits} bits, never {number}{cure}")


def _check_prefix(column: Column, pattern: str) -> None:
    """Refuse a pattern with whose beginning no address begins."""
    beginning = _WILDCARD.split(pattern, maxsplit=1)[0]
    if column.is_address and not _RAW_BEGINNING.fullmatch(beginning):
        raise QueryError(
            f"{column.name} holds raw addresses, such as 0: and 64 upper-case hex digits: none "
            f"begins with {beginning!r}"
        )


def _check(column: Column, text: str) -> None:
    name = column.name
    if column.values and text not in column.values:
        raise QueryError(f"{name} is one of {', '.join(column.values)}, never {text!r}")
    if column.is_address and text:
        raw = _write_raw(text)
        if raw is None:
            raise QueryError(
                f"{name} holds raw addresses, such as 0: and 64 hex digits, not {text!r}"
            )
        if raw != text:
            raise QueryError(f"{name} holds raw addresses: write {raw!r} in place of {text!r}")
    if name == "shard" and _SHARD_DIGITS.fullmatch(text):
        raise QueryError(f"shard holds signed numbers: write {read_shard(text)} for {text!r}")
    if column.type in ("hash", "bytes") and text and "\\x" not in text:
        macro = "unhex"
        if _write_raw(text) is not None:
            macro = "ton_account"
        elif len(text.removeprefix("0x")) == _HEX_DIGITS or len(text) in _BASE64_DIGITS:
            macro = "ton_hash"
        raise QueryError(f"{name} holds bytes, not text: write {macro}({text!r})")


def _write_raw(text: str) -> str | None:
    """Return the raw form of an address; None if the text is no address."""
    try:
        return normalize_address(text)
    except ValueError:
        return None


def list_notes(snapshot: Snapshot, query: str) -> tuple[str, ...]:
    """Return what a statement cannot know from this lake: accounts that no block of it touched."""
    words = set(_WORD.findall(query.lower()))  # a view that another one reads is not asked for
    asked = [name for name in list_views(query) if name.startswith(_OF_ALL_ACCOUNTS)]
    asked = [name for name in asked if name in words]
    ranges = snapshot.known_ranges
    if not asked or not ranges or snapshot.has_every_account(ranges[-1][1]):
        return ()
    if len(ranges) == 1 and ranges[0][0] <= 1:
        return ()
    covered = ", ".join(f"{first}..{last}" for first, last in ranges)
    note = f"{asked[0]} has only accounts that masterchain blocks {covered} touched: this lake "
    return (f"{note}lacks the state before them (tonlake ingest-state reads it)",)
