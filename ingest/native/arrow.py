"""Buffers that the extension filled, as Arrow tables. Nothing is copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lake.schema import ARROW_TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.schema import Table

    Filled = tuple[int, Any, Any, Any]
    """Number of NULLs, and buffers of validity, values and offsets, None where there is none."""


def make_table(table: Table, rows: int, columns: Sequence[Filled]) -> pa.Table:
    """Return the table that consists of these columns."""
    schema = table.arrow
    if not rows:
        return schema.empty_table()
    arrays = [
        _make_array(field.type, rows, filled) for field, filled in zip(schema, columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _make_array(kind: pa.DataType, rows: int, filled: Filled) -> pa.Array:
    null_count, validity, values, offsets = filled
    bits = pa.py_buffer(validity) if null_count else None
    data = pa.py_buffer(values)
    if offsets is None:
        return pa.Array.from_buffers(kind, rows, [bits, data], null_count)
    if kind != ARROW_TYPES["hashes"]:
        return pa.Array.from_buffers(kind, rows, [bits, pa.py_buffer(offsets), data], null_count)
    hash_type = kind.value_type
    count = data.size // hash_type.byte_width
    hashes = pa.Array.from_buffers(hash_type, count, [None, data], 0)
    places = [bits, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(kind, rows, places, null_count, children=[hashes])
