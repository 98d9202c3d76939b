"""Collects decoded rows as tuples, one list per table, and turns them into Arrow columns."""

from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.errors import DecodeError
from tonlake.lake.file.rows import make_rows
from tonlake.lake.schema import DECODED_TABLES, TABLES, Table

Row = tuple[Any, ...]


class RowSet(dict[str, list[Row]]):
    """Rows of ``DECODED_TABLES``; a row is a tuple of the table's columns in schema order."""

    def __init__(self) -> None:
        super().__init__((table.name, []) for table in DECODED_TABLES)

    def to_arrow(self) -> dict[str, pa.Table]:
        """Return every table as Arrow, sorted as its schema says."""
        return {name: make_table(TABLES[name], rows) for name, rows in self.items()}


def make_table(table: Table, rows: list[Row]) -> pa.Table:
    """Sort rows and turn them into columns."""
    rows.sort(key=itemgetter(*[table.names.index(name) for name in table.sort]))
    try:
        return make_rows(table, rows)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise DecodeError(_describe_misfit(table, rows)) from error


def _describe_misfit(table: Table, rows: list[Row]) -> str:
    """Describe the row and column of the first value that its Arrow type cannot represent."""
    for row in rows:
        for field, value in zip(table.arrow, row, strict=True):
            try:
                pa.scalar(value, field.type)
            except (pa.ArrowInvalid, OverflowError):
                named = dict(zip(table.names, row, strict=True))
                key = ", ".join(f"{name} {_show(named[name])}" for name in table.key)
                return f"{table.name}.{field.name} of {key}: {_show(value)} is out of range"
    return f"{table.name}: the values of a column cannot be converted"


def _show(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def keep_first_cells(cells: pa.Table) -> pa.Table:
    """Return the rows of ``state_cells`` sorted by hash, keeping the first of equal cells."""
    hashes = cells["hash"].combine_chunks()
    if len(hashes) < 2:  # noqa: PLR2004 - a single cell has no duplicate
        return cells
    if pc.all(pc.less(hashes[:-1], hashes[1:])).as_py():
        return cells
    order = pc.sort_indices(hashes)  # stable
    ordered = hashes.take(order)
    is_new = pc.not_equal(ordered[1:], ordered[:-1])
    return cells.take(order.filter(pa.concat_arrays([pa.array([True]), is_new])))
