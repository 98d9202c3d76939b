"""Decides which named queries Spark can run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.lake.duck.connection import list_views
from tonlake.lake.schema.view import VIEWS

if TYPE_CHECKING:
    from tonlake.queries.loader import Query

_DUCKDB_ALONE = ("jaro_winkler_similarity", "ton_friendly")


def needs_duckdb(query: Query) -> bool:
    """Whether a query reads views for people, or calls a function that Spark does not have."""
    return (
        query.is_everyday
        or not VIEWS.keys().isdisjoint(list_views(query.sql))
        or any(function in query.sql for function in _DUCKDB_ALONE)
    )
