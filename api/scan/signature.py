"""Scans of messages by the layout of their bodies, as tables that a signature defines."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from tonlake.api.errors import RequestInvalid
from tonlake.api.scan.filter import read_filter, read_number, read_text, suggest
from tonlake.ingest.derive.body.fields import read_tables
from tonlake.ingest.errors import SignatureInvalid
from tonlake.lake.duck.body_table import MESSAGE_COLUMNS, MISFITS, check_names
from tonlake.lake.errors import QueryError
from tonlake.lake.scan.body import BodyFilter, BodyRows
from tonlake.lake.scan.plan import Among
from tonlake.lake.schema import MESSAGES

if TYPE_CHECKING:
    from tonlake.api.scan.query import TableScan, Value
    from tonlake.lake.duck.body_table import BodyTable
    from tonlake.lake.scan.body import BodyView, BodyViews
    from tonlake.lake.scan.plan import Filter

_ADDRESSES = frozenset({"source", "destination", "account"})


def read_signature_tables(signature: str | None) -> dict[str, BodyTable]:
    """Return the tables that a signature defines, by name.

    Raises:
        RequestInvalid: the signature is invalid.
    """
    if signature is None:
        return {}
    try:
        tables = read_tables([signature])
        check_names(tables)
    except (SignatureInvalid, QueryError) as error:
        raise RequestInvalid(f"signature: {error}") from error
    return {table.name: table for table in tables}


def make_body_rows(
    name: str, table: TableScan, known: dict[str, BodyTable], views: BodyViews
) -> BodyRows | None:
    """Return the rows of a signature's table; None if ``name`` is not one of them.

    Raises:
        RequestInvalid: a column does not exist, or a value does not fit its column.
    """
    misfits = name not in known
    found = known.get(name.removesuffix(MISFITS) if misfits else name)
    if found is None or (misfits and not name.endswith(MISFITS)):
        return None
    view = views.add(found, misfits=misfits)
    for column in table.columns:
        _find_field(view.schema, column)
    selections = [
        [_make_filter(view, column, values) for column, values in each.items()]
        for each in table.where
    ]
    columns = tuple(table.columns) or tuple(view.schema.names)
    return BodyRows(name, view, columns, selections if all(selections) else [])


def _find_field(schema: pa.Schema, name: str) -> pa.Field:
    if name not in schema.names:
        raise RequestInvalid(f"column {suggest(name, schema.names)}")
    return schema.field(name)


def _make_filter(view: BodyView, name: str, values: list[Value]) -> BodyFilter:
    kind = _find_field(view.schema, name).type
    try:
        own = Among(name, pa.array([_read_value(kind, value) for value in values], kind))
    except (ValueError, TypeError, OverflowError, ArithmeticError, pa.ArrowException) as error:
        raise RequestInvalid(f"{name} is of type {kind}: {error}") from error
    column = view.find_message_column(name)
    return BodyFilter(own, _make_early(column, values) if column else None)


def _make_early(column: str, values: list[Value]) -> Filter | None:
    """Return the equivalent filter on ``messages``, applied before decoding, or None."""
    is_plain = MESSAGE_COLUMNS.get(column) == column and column != "tx_account"
    if None in values or not (is_plain or column in _ADDRESSES):
        return None
    return read_filter(MESSAGES, column, values)


def _read_value(kind: pa.DataType, value: Value) -> object:
    """Convert a value to the type of its column."""
    if value is None:
        return None
    if pa.types.is_boolean(kind) or isinstance(value, bool):
        if not (pa.types.is_boolean(kind) and isinstance(value, bool)):
            raise ValueError(f"{value!r} does not fit")
        return value
    if pa.types.is_string(kind):
        return read_text(str(value))
    if pa.types.is_binary(kind):
        return bytes.fromhex(str(value))
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        number = read_number(value)
        return Decimal(number) if pa.types.is_decimal(kind) else number
    raise ValueError("scans cannot filter by it")
