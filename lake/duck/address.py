"""Lets filters on the text of an address prune: files have bounds of account ids, not of texts."""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING

from tonlake.lake.duck.tree import EXPLAIN, list_filters, list_nodes
from tonlake.lake.schema.view import VIEWS

if TYPE_CHECKING:
    import duckdb

_ADDRESS = re.compile(r"-?[0-9]{1,9}:([0-9A-F]{64})")
_COLUMN = re.compile(rb"""((?:[\w"]+\.)?)[\w"]+\s*(=|in\b)""", re.IGNORECASE)


def filter_accounts(connection: duckdb.DuckDBPyConnection, query: str) -> str:
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
