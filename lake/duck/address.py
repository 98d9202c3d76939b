"""Lets filters on the text of an address prune: files have bounds of account ids, not of texts."""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING

from tonlake.lake.duck.tree import EXPLAIN, list_filters, list_nodes
from tonlake.lake.schema.view import VIEWS

if TYPE_CHECKING:
    import duckdb

_FILTER = re.compile(rb"""((?:[\w"]+\.)?)[\w"]+\s*=\s*'(-?[0-9]{1,9}):([0-9A-F]{64})'""")


def filter_accounts(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """Return a query that compares workchain and account id, too, where it compares an address.

    These are conditions ``address = '0:…'`` of WHERE, all of which must hold, on columns of views.
    """
    text = query.encode()
    if not _FILTER.search(text):
        return query
    explain = EXPLAIN.match(query)
    begin = len(explain[0].encode()) if explain else 0
    filters = list_filters(list_nodes(connection, query))
    for table, name, _, at in sorted(filters, key=itemgetter(-1), reverse=True):
        view, own = table["table_name"].lower(), name == "address"
        keys = ("workchain", "account") if own else (f"{name}_workchain", f"{name}_id")
        known = {each.name for each in VIEWS[view].columns} if view in VIEWS else set()
        written = _FILTER.match(text, begin + at)
        if written and known >= {name, *keys}:
            added = f"%b{keys[0]} = %b and %b{keys[1]} = unhex('%b') and ".encode()
            text = text[: begin + at] + added % written.group(1, 2, 1, 3) + text[begin + at :]
    return text.decode()
