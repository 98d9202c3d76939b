"""Runs SQL statements over message bodies, user-defined tables and get-methods over time."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

import pyarrow as pa

from tonlake.api.python.history import NAME, add_history
from tonlake.api.python.source import Opened
from tonlake.ingest.derive.body.fields import read_tables
from tonlake.lake.duck.answer import ask, naming_the_fault
from tonlake.lake.duck.body_table import BodyTable, add_tables


def ask_bodies(
    opened: Opened, statement: str, parameters: Mapping[str, object], signatures: Iterable[str]
) -> pa.Table:
    """Run a statement with the tables of ``signatures`` in its scope.

    Raises:
        SignatureInvalid: a signature is invalid.
        QueryError, LakeCorrupt: as ``Lake.sql``.
    """
    tables = read_tables(signatures)
    views = name_views(statement, tables)
    with closing(opened.connect(views)) as connection, naming_the_fault(opened.snapshot):
        misfits = add_tables(connection, tables)
        if NAME in statement.lower():
            add_history(connection, opened)
        found = ask(connection, opened.snapshot, statement, parameters).read_all()
    for warning in misfits.warnings():
        warnings.warn(warning, stacklevel=3)
    return found


def name_views(statement: str, tables: Sequence[BodyTable]) -> str:
    """Return ``statement`` extended by the views that ``tables`` depend on."""
    return f"{statement} messages" if tables else statement
