"""Rebuilds the bags of a lake's transactions, most of which are not stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.ingest.decode.block.recipe import restore_bags

if TYPE_CHECKING:
    import duckdb


def read_bags(connection: duckdb.DuckDBPyConnection) -> dict[bytes, bytes]:
    """Return the bag of every transaction by its hash, in the order of the chain."""
    rows: list[dict[str, Any]]
    rows, messages = (
        connection.sql(text).to_arrow_table().to_pylist()
        for text in ("from transactions order by lt, workchain", "from messages")
    )
    restore_bags(rows, messages)
    return {row["hash"]: row["boc"] for row in rows}
