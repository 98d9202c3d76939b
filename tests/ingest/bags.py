"""Reads the bags of a lake's transactions."""

import duckdb


def read_bags(connection: duckdb.DuckDBPyConnection) -> dict[bytes, bytes]:
    """Return the bag of every transaction by its hash, in the order of the chain."""
    rows = connection.execute("select hash, boc from transactions order by lt, workchain")
    return dict(rows.fetchall())
