"""Leaves out of views the joins that a statement does not need, and fits others to few rows.

DuckDB runs a left join even if no column of it is read, as it cannot know that rows of the other
table are unique by their keys. In the SQL of a view, a line that ends with ``-- part: <name>``, and
the lines below that are indented deeper, belong to a part, which has the columns of ``PARTS``.

With one equal key in a join, DuckDB skips rows that have none of these keys while it reads them.
For one account or transaction, lines that end with ``-- bounded`` compare by ``<=`` and ``>=`` in
place of ``=``. For many rows that takes longer: each is compared with all others of its key. And
lines that end with ``-- many`` are left out: other keys of the join find few rows.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from tonlake.lake.duck.tree import RELATIONS, WORD, Node, filter_accounts, list_filters, list_nodes
from tonlake.lake.schema import TABLES
from tonlake.lake.schema.dictionary import REFERENCE_TABLES, VIEWS

if TYPE_CHECKING:
    import duckdb

_LISTED = (files("tonlake.lake.duck") / "parts.txt").read_text("utf-8").splitlines()
PARTS = {part: frozenset(names.split()) for part, names in (line.split(":") for line in _LISTED)}
"""Columns of each part, in any view, or the view that alone reads it."""

VIEWS_IN_PARTS = frozenset(
    {"v_messages", "v_transactions", "v_transfers", "v_jetton_transfers", "v_swaps", "v_accounts"}
    | {"v_daily", "v_nft_events", "v_nft_sales", "decoded_messages", "traced_transactions"}
)

FEW, TRACE, PAIRED, OF_TRACE = "few", "by_trace", "paired", "of_trace"
"""Besides parts: a statement asks for one account, transaction or trace, for given traces, for
messages of one account with no other filter that the table has, or for messages of one trace:
``one_end_of`` and ``one_end_of_trace``, which joins the trace itself, fit the last two, and
``few_traces`` one trace."""

_OTHERS = {
    "token": ("kind", "ton", ("v_transfers",)),
    "moved": ("event", "minted", ("v_nft_events", "v_nft_sales")),
}
"""Parts of rows that do not have a text in a column, and the views over these parts."""

_MADE_FROM = {"moved": "nft_sales"}
"""Parts without rows if a table has none."""

ASKED = {
    FEW: r"\b(account|address|(sender|recipient)(_id)?|source|destination|(tx|msg)_hash|trace_id)"
    r"\s*=\s*(ton_|unhex|['$?(])",
    TRACE: r"\btrace_id\s*(=|in\b)",
    PAIRED: r"(?s)\A(?!.*v_messages.*v_messages|.*\b(or|filter|in_days)\b|.*\b(day|time|opcode"
    r"|mc_seqno|\w+_(lt|hash))\s*([=<>]|between|in\b)).*\bv_messages\b.*\b(where|and)\s+(\w+\.)?"
    r"(sender|recipient)_id\s*=\s*(ton_account|unhex)\(",
    OF_TRACE: r"(?s)\A(?!.*v_messages.*v_messages|.*\b(or|filter|join)\b).*\bv_messages\b.*"
    r"\b(where|and)\s+(\w+\.)?trace_id\s*=\s*(ton_hash|unhex)\(",
}
_BOUNDED = re.compile(r"(\S+|\(.*\)) = (\S+) -- bounded$", re.MULTILINE)
_MANY = re.compile(r"^.* -- many\n", re.MULTILINE)

_PART = re.compile(r"^( *)[^ \n].* -- part: (\w+)\n(?:\1 +.*\n)*", re.MULTILINE)


def list_empty(tables: Mapping[str, Collection[object]]) -> frozenset[str]:
    """Return the parts without rows, given the files of all tables."""
    return frozenset(part for part, name in _MADE_FROM.items() if not tables.get(name))


def cut_parts(sql: str, unread: Collection[str] = (), empty: Collection[str] = ()) -> str:
    """Return the SQL of a view without some of its parts, and without those that have no rows.

    If none is unread, ``grouped`` replaces ``traced`` and ``states``: DuckDB can leave it out.
    """
    if FEW in unread:
        sql = _MANY.sub("", _BOUNDED.sub(r"\1 <= \2 and \1 >= \2", sql))
    if {FEW, TRACE}.issubset(unread):
        sql = sql.replace("every_trace(", "few_traces(")
    if PAIRED in unread:
        sql = sql.replace("one_end(", "one_end_of(")
    if OF_TRACE in unread:
        sql = sql.replace(
            "one_end('messages')", "one_end_of_trace('messages', 'transaction_traces')"
        )
        unread = {*unread, "joined_trace"}
    cut = {*empty, *unread, "grouped"} if unread else {*empty, "traced", "states"}
    return _PART.sub(lambda part: "" if part[2] in cut else part[0], sql)


def list_unread(
    connection: "duckdb.DuckDBPyConnection", statement: str | None, views: Iterable[str]
) -> tuple[str, ...]:
    """Return the parts of which a statement reads no column, for sure, and what it asks for."""
    if statement is None or VIEWS_IN_PARTS.isdisjoint(views):
        return ()
    words = set(WORD.findall(filter_accounts(connection, statement).lower()))
    nodes = list_nodes(connection, statement)
    unread = tuple(part for part, columns in PARTS.items() if columns.isdisjoint(words))
    asked = tuple(kind for kind, text in ASKED.items() if re.search(text, statement.lower()))
    asked += tuple(part for part in _OTHERS if _asks_only(nodes, *_OTHERS[part]))
    return unread + asked if unread and _names_each_column(nodes) else asked


def _asks_only(nodes: list[Node], column: str, text: str, views: Sequence[str]) -> bool:
    """Whether a statement reads any of these views, and only rows with a text in a column."""
    asked = [table for table, *equal, _ in list_filters(nodes) if equal == [column, [text]]]
    named = [node for node in nodes if str(node.get("table_name")).lower() in views]
    read = named + list(filter(_names_relation, nodes))
    return bool(read) and all(node in asked for node in read)


@cache
def _list_columns() -> frozenset[str]:
    columns = [column for table in TABLES.values() for column in table.shown]
    columns += [column for view in (*VIEWS.values(), *REFERENCE_TABLES) for column in view.columns]
    return frozenset(column.name for column in columns)


def _names_each_column(nodes: list[Node]) -> bool:
    """Whether a statement is a query without stars, rows as values, and names that are unknown.

    An unknown name, such as a misspelt one, reads all parts, so that DuckDB suggests the nearest.
    """
    relations = {
        str(node[key]).lower()
        for node in nodes
        if node.get("type") in (*RELATIONS, "SUBQUERY", "JOIN")
        for key in ("alias", "table_name")
        if node.get(key)
    }
    ordered = [node["expression"] for node in nodes if "null_order" in node]
    by_all = [node for node in ordered if node.get("columns") and not node.get("expr")]
    made = {node["alias"].lower() for node in nodes if "class" in node and node.get("alias")}
    return not any(
        node.get("error")
        or (node.get("class") == "STAR" and node not in by_all)
        or node.get("type") == "PIVOT"
        or node.get("ref_type") in ("NATURAL", "POSITIONAL")
        or _names_relation(node)
        or _is_unknown(node, relations, made)
        for node in nodes
    )


def _names_relation(node: Node) -> bool:
    """Whether a node is a text that names a view, for a macro that reads it."""
    value = node.get("literal")
    return isinstance(value, dict) and str(value.get("text")).lower() in VIEWS_IN_PARTS


def _is_unknown(node: Node, relations: set[str], made: set[str]) -> bool:
    last = str((node.get("column_names") or [""])[-1]).lower()
    known = last in _list_columns() or last in made
    return node.get("class") == "COLUMN_REF" and (last in relations or not known)
