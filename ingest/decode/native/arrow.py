"""Arrays that the extension filled, as Arrow tables. Nothing is copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from tonlake.lake.schema import Table


class _Filled:
    """The Arrow PyCapsule interface of an array: https://arrow.apache.org/docs/format/CDataInterface."""

    __slots__ = ("_capsule", "_schema")

    def __init__(self, schema: pa.Schema, capsule: object) -> None:
        self._schema = schema
        self._capsule = capsule

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return the schema and the array, both in capsules; ``requested_schema`` is ignored."""
        return self._schema.__arrow_c_schema__(), self._capsule


def make_table(table: Table, rows: int, capsule: object) -> pa.Table:
    """Return the table that the extension's array holds; ``capsule`` may be None for no rows."""
    if not rows:
        return table.empty
    schema = table.arrow
    return pa.Table.from_batches([pa.record_batch(_Filled(schema, capsule))], schema=schema)
