"""Refuses statements that could reveal where the lake is on this machine.

DuckDB resolves the paths that it may read and shows them among its settings. Its name resolution
cannot be restricted, so the whole text is searched for these names, string constants included, as a
string may name a table. Functions that run text as SQL would circumvent that and are refused, too.
"""

from __future__ import annotations

import re

import duckdb

from tonlake.lake.errors import QueryError

_SETTINGS = re.compile(
    r"current_setting|duckdb_settings|pg_settings|allowed_paths|allowed_directories"
    r"|query_table|json_execute_serialized_sql|json_serialize_plan",
    re.IGNORECASE,
)
_RUNNING = "query"
"""Table function that runs its argument as a statement."""


def check_hidden(query: str) -> None:
    """Refuse a statement that could show settings of the database.

    Raises:
        QueryError: the statement names a setting, or a function that runs text as SQL.
    """
    found = _SETTINGS.search(query)
    name = found[0] if found else _RUNNING if _RUNNING in _list_identifiers(query) else None
    if name is not None:
        raise QueryError(f"{name} is not available here: it could show settings of the service")


def _list_identifiers(query: str) -> set[str]:
    """Return the identifiers in a statement, lower-cased and unquoted."""
    data = query.encode()
    tokens = duckdb.tokenize(query)
    ends = [*(at for at, _ in tokens[1:]), len(data)]
    kinds = (duckdb.token_type.identifier, duckdb.token_type.keyword)
    texts = (
        data[at:end].decode(errors="replace").split()
        for (at, kind), end in zip(tokens, ends, strict=True)
        if kind in kinds
    )
    return {text[0].strip('"').lower() for text in texts if text}
