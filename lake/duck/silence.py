"""Finds what would make a statement answer too little without an error.

DuckDB compares any two texts, and takes a text for bytes: a friendly address where the lake has raw
ones, a misspelt kind, or the hex digits of a hash equal no row. And a lake that begins in the
middle of the chain does not know all accounts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from tonlake.lake.duck.connection import ALL_VIEWS, VIEW_BASES, VIEWED_TABLES, list_views
from tonlake.lake.errors import QueryError
from tonlake.lake.schema.view_catalogue import VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.schema.column import Column

Node = dict[str, Any]

_EQUALITIES = {"COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_IN", "COMPARE_NOT_IN"}
_EQUALITIES |= {"COMPARE_DISTINCT_FROM", "COMPARE_NOT_DISTINCT_FROM"}
_RELATIONS = ("BASE_TABLE", "TABLE_FUNCTION")
_ROWS_OF_A_TABLE = ("latest", "as_of", "states_as_of")
"""Macros whose first argument names the table."""
_PARSED = "select json_serialize_sql($query::varchar)"
_RAW = "select ton_address(ton_workchain($text), ton_account($text))"
_WORD = re.compile(r"\w+")
_HEX_DIGITS, _BASE64_DIGITS = 64, (43, 44)
_OF_ALL_ACCOUNTS = ("latest_", "v_accounts", "v_balances", "v_jettons", "balances_", "jetton_hold")
"""Beginnings of the names of views that answer for all accounts, if the lake knows them."""


def check_literals(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, object]
) -> None:
    """Refuse to compare a column with a text that none of its values can equal.

    Columns are known by name where the statement reads a table or view of the lake; those that it
    renames or computes are not checked.

    Raises:
        QueryError: with the column, the text, and what to write.
    """
    if "'" not in query and not any(isinstance(value, str) for value in parameters.values()):
        return
    (parsed,) = connection.execute(_PARSED, {"query": query}).fetchall()[0]
    nodes = list(_walk(msgspec.json.decode(parsed)))
    scope = _Scope(nodes)
    for node in nodes:
        if node.get("type") in _EQUALITIES:
            sides = node.get("children") or [node.get("left"), node.get("right")]
            columns = [column for side in sides if (column := scope.find(side)) is not None]
            texts = [text for side in sides if (text := _read_text(side, parameters)) is not None]
            for column in columns:
                for text in texts:
                    _check(connection, column, text)


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
        name = _read_text(function["arguments"][0]["expression"], {}) or name
    return name


def _list_columns(view: str) -> tuple[Column, ...]:
    """Return the columns of a view; those of its bases if it is one over the rows of tables."""
    if view in VIEWS:
        return VIEWS[view].columns
    if view in VIEWED_TABLES:
        return VIEWED_TABLES[view].columns
    return tuple(column for base in VIEW_BASES.get(view, ()) for column in _list_columns(base))


def _read_text(node: Node | None, parameters: Mapping[str, object]) -> str | None:
    if node is None:
        return None
    if node.get("class") == "PARAMETER":
        value = parameters.get(node["identifier"])
        return value if isinstance(value, str) else None
    literal = node.get("literal") or {}
    text: str | None = literal.get("text")
    is_text = node.get("class") == "CONSTANT" and literal.get("kind") == "STRING"
    return text if is_text else None


def _check(connection: duckdb.DuckDBPyConnection, column: Column, text: str) -> None:
    name = column.name
    if column.values and text not in column.values:
        raise QueryError(f"{name} is one of {', '.join(column.values)}, never {text!r}")
    if column.is_address and text:
        raw = _write_raw(connection, text)
        if raw is None:
            raise QueryError(
                f"{name} holds raw addresses, such as 0: and 64 hex digits, not {text!r}"
            )
        if raw != text:
            raise QueryError(f"{name} holds raw addresses: write {raw!r} in place of {text!r}")
    if column.type in ("hash", "bytes") and text and "\\x" not in text:
        macro = "unhex"
        if _write_raw(connection, text) is not None:
            macro = "ton_account"
        elif len(text.removeprefix("0x")) == _HEX_DIGITS or len(text) in _BASE64_DIGITS:
            macro = "ton_hash"
        raise QueryError(f"{name} holds bytes, not text: write {macro}({text!r})")


def _write_raw(connection: duckdb.DuckDBPyConnection, text: str) -> str | None:
    """Return the raw form of an address; None if the text is no address."""
    try:
        ((raw,),) = connection.execute(_RAW, {"text": text}).fetchall()
    except duckdb.Error:
        return None
    return str(raw)


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
