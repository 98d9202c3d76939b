"""Converts Arrow columns to Python values.

pyarrow converts fixed-size binary, the type of all hashes, through scalars: that takes twenty
times as long as binary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FEW = 16
"""Up to this many values, a cast takes longer than it saves."""


def list_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return the values of a column, None for NULL: like ``to_pylist``, but faster for hashes."""
    if len(column) > _FEW:
        if pa.types.is_fixed_size_binary(column.type):
            column = column.cast(pa.binary())
        elif column.type == _HASHES:
            column = column.cast(pa.list_(pa.binary()))
    values: list[Any] = column.to_pylist()
    return values


_HASHES = pa.list_(pa.binary(32))


def iter_tuples(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the values of the columns ``names``, row by row."""
    if not rows.num_rows:
        return iter(())
    return zip(*(list_values(rows[name]) for name in names), strict=True)


def iter_dicts(rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield each row as a dict: like ``to_pylist``, but faster for hashes."""
    names = rows.column_names
    return (dict(zip(names, values, strict=True)) for values in iter_tuples(rows, names))


def item_bytes(values: pa.Array | pa.ChunkedArray) -> memoryview:
    """Return the raw bytes of fixed-width values without NULLs."""
    joined = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    width = joined.type.bit_width // 8
    first = joined.offset * width
    buffer = joined.buffers()[1]
    if buffer is None:
        return memoryview(b"")
    return memoryview(buffer)[first : first + len(joined) * width]
