"""Finds what would make a statement answer too little without an error.

DuckDB compares any two texts or numbers, and takes a text for bytes: a friendly address where the
lake has raw ones, a misspelt kind, the hex digits of a hash, or an op-code without its sign equal
no row, whether written beside the column, as a bound, or in VALUES that are joined. And a lake that
begins in the middle of the chain does not know all accounts.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Any

from tonlake.lake.account import normalize_address, read_shard
from tonlake.lake.duck.connection import (
    NAMES_TAKEN,
    VIEWED_TABLES,
    list_macros,
    list_views,
    read_bases,
)
from tonlake.lake.duck.tree import RELATIONS, WORD, Node, list_nodes
from tonlake.lake.errors import QueryError
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.schema.column import Column
from tonlake.lake.schema.dictionary import REFERENCE_TABLES, VIEWS

if TYPE_CHECKING:
    import duckdb

_EQUALITIES = {"COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_IN", "COMPARE_NOT_IN"}
_EQUALITIES |= {"COMPARE_DISTINCT_FROM", "COMPARE_NOT_DISTINCT_FROM"}
_ORDERS = {"COMPARE_BETWEEN", "COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO"}
_ORDERS |= {"COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO"}
_WHOLE = {"COMPARE_EQUAL", "COMPARE_NOTEQUAL"}
_PLAIN = {"COLUMN_REF", "CONSTANT", "PARAMETER"}
_SIDES = ("left", "right", "input", "lower", "upper")
_LISTS = ("list_value", "unnest")
_LIST_HAS = ("contains", "list_contains", "list_has", "list_has_any", "list_has_all", "@>", "<@")
_EQUAL_OR_ANY = "equal_or_any"
"""The macro of named queries for a parameter that may be missing."""
_PREFIXED = ("~~", "starts_with", "prefix", "^@")
_TEXT_TYPES = ("varchar", "text", "string")
_ROWS_OF_A_TABLE = ("latest", "as_of", "states_as_of")
"""Macros whose first argument names the table."""
_WILDCARD = re.compile("[%_]")
_RAW_BEGINNING = re.compile("-?[0-9]*|-?[0-9]+:[0-9A-F]{0,64}")
_SHARD_DIGITS = re.compile("[0-9a-fA-F]{16}")
_LARGE = re.compile(r"(?is)[0-9_]{10}|\A(?=.*opcode).*(0x|-\s*[0-9])")
"""An integer that may be too large for a column, or an op-code that may be one with a sign."""
_OPCODE = re.compile("0[xX][0-9a-fA-F]{1,8}|-?[1-9][0-9]{0,9}")
_BITS = {"int8": 8, "int32": 32, "int64": 64}
_PATTERNS = ("opcode", "shard")
"""Numbers that others write without a sign."""
_NAMES = ("decoded_opcode", "opcode_name", "names", "interfaces")
_NAME = re.compile("[a-z0-9_ ]*")
_WRITTEN = {
    "hex": ("upper-case digits", "[0-9A-F]*"),
    "lower": ("lower case", "[^A-Z]*"),
    "upper": ("upper case", "[^a-z]*"),
    "ton_address": ("0: and 64 upper-case digits", "[-0-9A-F:]*"),
    "ton_friendly": ("the bounceable form, EQ or Ef and more, with - and _", "(E[-0-9A-Za-z_]*)?"),
    "ton_opcode": ("0x and lower-case digits", "(0(x[0-9a-f]*)?)?"),
}
"""What functions write, and the pattern of its beginnings; other arguments are not known."""
_OF_OTHER_FORMS = re.compile("comment|ton_friendly", re.IGNORECASE)
"""What may well equal a friendly address."""
_MACROS = ("ton_", _EQUAL_OR_ANY)
_NOT_COMPARED = ("TABLE_FUNCTION", "EXPRESSION_LIST")
_MOST_KNOWN = 2
_MOST_LISTED = 22
_HEX_DIGITS, _BASE64_DIGITS = 64, (43, 44)
_DESCRIBED = VIEWED_TABLES | VIEWS | {table.name: table for table in REFERENCE_TABLES}
_OF_ALL_ACCOUNTS = ("latest_", "v_accounts", "v_balances", "v_jettons", "balances_", "jetton_hold")
"""How views and macros are named that answer for all accounts, if the lake knows them."""


def check_literals(
    connection: "duckdb.DuckDBPyConnection", query: str, parameters: Mapping[str, object]
) -> None:
    """Raise QueryError if a column, by its own name, is compared with a value it never holds."""
    if "'" not in query and not parameters and not _LARGE.search(query):
        return
    nodes = list_nodes(connection, query)
    scope = _Scope(nodes)
    for node in nodes + list(_pair_rows(nodes)) + scope.list_joins(nodes):
        sides = _list_sides(node)
        columns = [column for side in sides if (column := scope.find(side)) is not None]
        if node.get("function_name") in _LIST_HAS and sides[0].get("column_names"):
            columns = [column for column in columns if column.type == "texts"]
        values = [value for side in sides for value in _read_values(side, parameters)]
        listed = [each for side in sides for each in scope.list_values(side)]
        for side in sides:
            _check_written(side, values, node)
        for column in columns:
            joined = [value for each in listed for value in _read_values(each, parameters)]
            has_some = any(value in column.values for value in joined)
            _check_values(column, values + joined * (not has_some), node)
    if scope.reads_lake_only and not _OF_OTHER_FORMS.search(query):
        for text in _list_passed(nodes[0], scope, parameters):
            if ":" not in text and (raw := _write_raw(text)):
                raise QueryError(f"tables hold raw addresses: write {raw!r} in place of {text!r}")


def _list_passed(root: Node, scope: "_Scope", parameters: Mapping[str, object]) -> Iterator[str]:
    """Yield the texts that reach a comparison through functions, cases or lambdas.

    Not those that are only selected, compared with a column that is known, or arguments of macros.
    """
    todo: list[Any] = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif not isinstance(node, dict) or node.get("type") in _NOT_COMPARED:
            continue
        elif node.get("class") in ("CONSTANT", "PARAMETER"):
            yield from (each for each in _read_values(node, parameters) if isinstance(each, str))
        elif not str(node.get("function_name")).startswith(_MACROS):
            sides = _list_sides(node)
            known = sides if any(map(scope.find, sides)) else node.get("select_list", [])
            plain = {id(each) for each in known if _read_values(each, parameters)}
            parts = [each if isinstance(each, list) else [each] for each in node.values()]
            todo += [each for each in chain.from_iterable(parts) if id(each) not in plain]


def _check_values(column: Column, values: list[str | int], node: Node) -> None:
    is_ordered = node.get("type") in _ORDERS
    for value in values:
        if isinstance(value, int):
            if not is_ordered or column.name in _PATTERNS:
                _check_number(column, value, is_ordered=is_ordered)
        elif node.get("function_name") in _PREFIXED:
            _check_prefix(column, value)
        elif not (is_ordered and column.is_address and _write_raw(value) is None):
            _check(column, value)
            _check_type(column, value, node)


def _check_written(side: Node, values: list[str | int], node: Node) -> None:
    """Refuse a text that a function never writes, or with which nothing that it writes begins."""
    name, operation = side.get("function_name"), node.get("function_name")
    if name not in _WRITTEN or len(side["arguments"]) > _MOST_KNOWN or operation in _LIST_HAS:
        return
    form, pattern = _WRITTEN[name]
    for value in () if node.get("type") in _ORDERS else values:
        beginning = _WILDCARD.split(str(value))[0] if operation in _PREFIXED else str(value)
        if not re.fullmatch(pattern, beginning, re.DOTALL):
            raise QueryError(f"{name}() writes {form}, never {value!r}")


def _list_sides(node: Node) -> list[Node]:
    """Return the expressions that a comparison compares; none for any other expression."""
    if node.get("type") in _EQUALITIES | _ORDERS:
        return node.get("children") or [node[name] for name in _SIDES if name in node]
    if node.get("comparison_type") in _EQUALITIES:  # in, = any: a query, or a list
        query = node["subquery"]["node"]
        firsts = [row[0] for row in _list_rows(query)] or query.get("select_list", [])
        if firsts and firsts[0].get("class") == "STAR":  # in (from names)
            name = query["from_table"].get("table_name", "")
            firsts = [{"class": "COLUMN_REF", "column_names": [name, "*"]}]
        return [node["child"], *firsts]
    name = node.get("function_name")
    sides = [argument["expression"] for argument in node.get("arguments") or ()]
    first = sides[0] if name in _PREFIXED else {}
    is_prefix = first.get("column_names") or first.get("function_name") in _WRITTEN
    return sides if name in _LIST_HAS or name == _EQUAL_OR_ANY or is_prefix else []


def _pair_rows(nodes: list[Node]) -> Iterator[Node]:
    """Yield a comparison for each place in rows that are compared, ``(type, source) = (x, y)``."""
    for node in nodes:
        sides = [side for side in _list_sides(node) if side.get("function_name") == "row"]
        for cells in zip(*[side["arguments"] for side in sides], strict=False):
            yield {"type": "COMPARE_EQUAL", "children": [cell["expression"] for cell in cells]}


def _list_rows(query: Node) -> list[list[Node]]:
    """Return the rows that a query consists of, if it reads no table."""
    if query.get("children"):  # a union
        return [row for part in query["children"] for row in _list_rows(part)]
    source = query.get("from_table") or {}
    if source.get("type") == "EXPRESSION_LIST":
        rows: list[list[Node]] = source["values"]
        return rows
    return [query["select_list"]] if source.get("type") == "EMPTY" else []


def _list_named(nodes: list[Node]) -> Iterator[tuple[str, list[str], Node]]:
    """Yield the name, the columns as far as they are named, and the query of each subquery."""
    for node in nodes:
        for each in node.get("cte_map", {}).get("map", ()):
            yield each["key"].lower(), each["value"]["aliases"], each["value"]["query_node"]
        if node.get("type") == "SUBQUERY" and "column_name_alias" in node:
            yield node["alias"].lower(), node["column_name_alias"], node["subquery"]["node"]


class _Scope:
    """The tables and views that a statement reads, by their names in it."""

    def __init__(self, nodes: list[Node]) -> None:
        self._read: dict[str, str] = {}
        self._listed: dict[tuple[str, str], list[Node]] = {}
        named = set()
        names = [node["alias"].lower() for node in nodes if "class" in node and node.get("alias")]
        for alias, columns, query in _list_named(nodes):
            named.add(alias)
            names += map(str.lower, columns)
            rows = _list_rows(query)
            given = columns or [cell["alias"] for row in rows[:1] for cell in row]
            for name, cell in [pair for row in rows for pair in zip(given, row, strict=False)]:
                self._listed.setdefault((alias, name.lower()), []).append(cell)
        for node in nodes:
            if node.get("type") in RELATIONS:
                name = _name_relation(node)
                self._read[node["alias"].lower() or name] = name
                names += map(str.lower, node["column_name_alias"])
        self._is_known = all(name in NAMES_TAKEN or name in named for name in self._read.values())
        self.reads_lake_only = self._is_known and bool(self._read)
        self._names = Counter(names)

    def list_joins(self, nodes: list[Node]) -> list[Node]:
        """Return the comparisons that USING and NATURAL stand for."""
        sources = {*self._read, *(alias for alias, _name in self._listed)}
        joins = [node for node in nodes if node.get("type") == "JOIN"]
        names = {name.lower() for node in joins for name in node["using_columns"]}
        if any(node["ref_type"] == "NATURAL" for node in joins):
            names |= {name for _alias, name in self._listed}
        return [
            {
                "type": "COMPARE_EQUAL",
                "children": [
                    {"class": "COLUMN_REF", "column_names": [source, name]} for source in sources
                ],
            }
            for name in names
        ]

    def list_values(self, node: Node | None) -> list[Node]:
        """Return what a column of VALUES, or of a query without a table, has in its rows."""
        if node is None or node.get("class") != "COLUMN_REF":
            return []
        *qualifier, name = map(str.lower, node["column_names"])
        if qualifier:
            alias = self._read.get(qualifier[-1], qualifier[-1])
            cells = [each for key, each in self._listed.items() if key[0] == alias]
            return self._listed.get((alias, name), cells[0] if cells and name == "*" else [])
        found = [cells for (_alias, each), cells in self._listed.items() if each == name]
        return found[0] if self._names[name] == 1 and found else []

    def find(self, node: Node | None) -> Column | None:
        """Return the column that an expression names; None if it is not known for sure."""
        if node and node.get("function_name") == "unnest":  # ``= any(column)``
            node = node["arguments"][0]["expression"]
        elif node and node.get("type") == "ARRAY_EXTRACT":
            node = node["children"][0]
        if node is None or node.get("class") != "COLUMN_REF":
            return None
        *qualifier, name = map(str.lower, node["column_names"])
        source = self._read.get(qualifier[-1]) if qualifier else None
        if source not in NAMES_TAKEN and (name in self._names or not self._is_known):
            return None
        views = [source] if source in NAMES_TAKEN else [*self._read.values()]
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
    if view in _DESCRIBED:
        return _DESCRIBED[view].columns
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
    if node.get("function_name") == "ton_opcode_number":
        forms = map(str, _read_values(node["arguments"][0]["expression"], parameters))
        numbers = [int(form, 0) for form in forms if _OPCODE.fullmatch(form)]
        return [number - (number >> 31 == 1) * (1 << 32) for number in numbers]
    return []


def _check_number(column: Column, number: int, *, is_ordered: bool) -> None:
    """Refuse a number that its type cannot hold, such as an op-code or a shard without a sign."""
    if column.name == "opcode" and column.type == "int64" and number < 0:
        cure = f"write {number % (1 << 32)}, not {number} or ton_opcode_number()"
        raise QueryError(f"opcode of actions is unsigned: {cure}")
    bits = _BITS.get(column.type)
    if bits is not None and number >= 1 << bits - 1:
        cure = f": write {number - (1 << bits)}" if number < 1 << bits and not is_ordered else ""
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
        near = get_close_matches(text.lower(), column.values, _MOST_LISTED, cutoff=0)
        listed = column.values if len(column.values) <= _MOST_LISTED else [*near, "..."]
        raise QueryError(f"{name} is one of {', '.join(listed)}, never {text!r}")
    if name in _NAMES and not _NAME.fullmatch(text):
        raise QueryError(f"{name} holds names such as jetton_transfer, never {text!r}")
    if column.is_address and text:
        raw = _write_raw(text)
        if raw is None and not (name == "asset" and text.isdecimal()):  # an extra currency
            raise QueryError(
                f"{name} holds raw addresses, such as 0: and 64 hex digits, not {text!r}"
            )
        if raw not in (None, text):
            raise QueryError(f"{name} holds raw addresses: write {raw!r} in place of {text!r}")
    if column.type in ("hash", "bytes") and text and "\\x" not in text:
        macro = "unhex"
        if _write_raw(text) is not None:
            macro = "ton_account"
        elif len(text.removeprefix("0x")) == _HEX_DIGITS or len(text) in _BASE64_DIGITS:
            macro = "ton_hash"
        raise QueryError(f"{name} holds bytes, not text: write {macro}({text!r})")


def _check_type(column: Column, text: str, node: Node) -> None:
    """Refuse a text that DuckDB cannot cast to the type of a column, with the cure."""
    name, sides = column.name, {side.get("class") for side in _list_sides(node)}
    if name == "shard" and _SHARD_DIGITS.fullmatch(text):
        raise QueryError(f"shard holds signed numbers: write {read_shard(text)} for {text!r}")
    is_opcode = name == "opcode" and column.type == "int32" and _OPCODE.fullmatch(text)
    if is_opcode and int(text, 0) >> 31 == 1:
        raise QueryError(f"opcode holds signed numbers: write ton_opcode_number({text!r})")
    is_list = column.type == "texts" and node.get("type") in _WHOLE and sides <= _PLAIN
    if is_list and not text.startswith("["):
        raise QueryError(f"{name} is a list: write list_contains({name}, {text!r})")


def _write_raw(text: str) -> str | None:
    """Return the raw form of an address; None if the text is no address."""
    try:
        return normalize_address(text)
    except ValueError:
        return None


def list_notes(snapshot: Snapshot, query: str) -> tuple[str, ...]:
    """Return what a statement cannot know from this lake: accounts that no block of it touched."""
    words = set(WORD.findall(query.lower()))  # a view that another one reads is not asked for
    named = (*list_views(query), *list_macros(query))
    asked = [one for one in named if one in words and one.startswith(_OF_ALL_ACCOUNTS)]
    ranges = snapshot.known_ranges
    is_whole = len(ranges) == 1 and ranges[0][0] <= 1
    if not asked or not ranges or is_whole or snapshot.has_every_account(ranges[-1][1]):
        return ()
    covered = ", ".join(f"{first}..{last}" for first, last in ranges)
    note = f"{asked[0]} has only accounts that masterchain blocks {covered} touched: this lake "
    return (f"{note}lacks the state before them (tonlake ingest-state reads it)",)
