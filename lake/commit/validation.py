"""Validates rows before they enter the lake, against the schema and the range of the commit."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.errors import RowsRejected
from tonlake.lake.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.lake.log.ranges import Range
    from tonlake.lake.schema import Table

MC_SEQNO = "mc_seqno"
"""Columns with a row's masterchain block; derived rows that span blocks have none."""


def check_tables(tables: Mapping[str, pa.Table], mc_range: Range, day: str) -> dict[str, pa.Table]:
    """Return the tables that have rows, with exactly the schema's fields.

    Raises:
        RowsRejected: a range, day, table, column, type, NULL or mc_seqno that is not allowed.
    """
    first, last = mc_range
    if not 1 <= first <= last:
        raise RowsRejected(f"{first}..{last} is not a range of masterchain blocks")
    if not is_day(day):
        raise RowsRejected(f"{day!r} is not a day; it must be YYYY-MM-DD")
    unknown = sorted(set(tables) - set(TABLES))
    if unknown:
        raise RowsRejected(f"the schema has no table {', '.join(unknown)}")
    checked = {
        name: check_rows(rows, TABLES[name]) for name, rows in tables.items() if rows.num_rows
    }
    # Rows of the zero state have mc_seqno 0 and come with the first masterchain block.
    lowest = 0 if first == 1 else first
    for name, rows in checked.items():
        if MC_SEQNO not in rows.column_names:
            continue
        seen = pc.min_max(rows[MC_SEQNO]).as_py()
        if seen["min"] < lowest or seen["max"] > last:
            raise RowsRejected(
                f"rows of {name} are of masterchain blocks {seen['min']}..{seen['max']}, "
                f"but the range is {first}..{last}"
            )
    return checked


def check_rows(rows: pa.Table, table: Table) -> pa.Table:
    """Return the rows of one table with exactly the schema's fields.

    Raises:
        RowsRejected: columns, types or NULLs that the schema does not allow.
    """
    if not rows.schema.equals(table.arrow):
        rows = _take_schema(rows, table)
    for at, column in enumerate(table.columns):
        if not column.nullable and rows.column(at).null_count:
            raise RowsRejected(f"{table.name}.{column.name} has NULLs, but the schema allows none")
    return rows


def _take_schema(rows: pa.Table, table: Table) -> pa.Table:
    """Return rows whose columns match, with the Arrow schema of the table."""
    if tuple(rows.column_names) != table.names:
        raise RowsRejected(
            f"rows of {table.name} have the columns {rows.column_names}, "
            f"but the schema has {list(table.names)}"
        )
    for values, field in zip(rows.columns, table.arrow, strict=True):
        if values.type != field.type:
            raise RowsRejected(
                f"{table.name}.{field.name} is {values.type}, but the schema has {field.type}"
            )
    return pa.table(rows.columns, schema=table.arrow)


def is_day(text: str) -> bool:
    """Whether ``text`` is a day as ``YYYY-MM-DD``."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
