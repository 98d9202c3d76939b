"""Rows on their way into Arrow: one list of tuples per table, turned into columns at the end."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.errors import DecodeError
from tonlake.lake.schema import BASE_TABLES, TABLES

if TYPE_CHECKING:
    from tonlake.lake.schema import Table

Row = tuple[Any, ...]


class RowSet:
    """Rows of all base tables; every row is a tuple with the table's columns in schema order."""

    def __init__(self) -> None:
        """Begin without rows."""
        self.rows: dict[str, list[Row]] = {table.name: [] for table in BASE_TABLES}

    def table(self, name: str) -> list[Row]:
        """Return the rows of one table, to append to."""
        return self.rows[name]

    def to_arrow(self) -> dict[str, pa.Table]:
        """Return every table as Arrow, sorted by the key of the schema."""
        return {name: make_table(TABLES[name], rows) for name, rows in self.rows.items()}


def make_table(table: Table, rows: list[Row]) -> pa.Table:
    """Sort rows and turn them into columns.

    Raises:
        DecodeError: a number that does not fit its column.
    """
    rows.sort(key=itemgetter(*[table.names.index(name) for name in table.sort]))
    schema = table.arrow
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    try:
        arrays = [
            pa.array(column, field.type) for field, column in zip(schema, columns, strict=True)
        ]
    except (pa.ArrowInvalid, OverflowError) as error:
        raise DecodeError(_describe_misfit(table, rows)) from error
    return pa.Table.from_arrays(arrays, schema=schema)


def _describe_misfit(table: Table, rows: list[Row]) -> str:
    """Name the row and column of the first value that its Arrow type cannot hold."""
    for row in rows:
        for field, value in zip(table.arrow, row, strict=True):
            try:
                pa.scalar(value, field.type)
            except (pa.ArrowInvalid, OverflowError):
                named = dict(zip(table.names, row, strict=True))
                key = ", ".join(f"{name} {_show(named[name])}" for name in table.key)
                return f"{table.name}.{field.name} of {key}: {_show(value)} is out of range"
    return f"{table.name}: a column cannot be made"


def _show(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def keep_first_cells(cells: pa.Table) -> pa.Table:
    """Return rows of ``state_cells`` by hash, of equal ones the first."""
    hashes = cells["hash"].combine_chunks()
    if len(hashes) < 2:  # noqa: PLR2004 - there is no other cell to equal
        return cells
    order = pc.sort_indices(hashes)  # stable
    ordered = hashes.take(order)
    is_new = pc.not_equal(ordered[1:], ordered[:-1])
    return cells.take(order.filter(pa.concat_arrays([pa.array([True]), is_new])))
