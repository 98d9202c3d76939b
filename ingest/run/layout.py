"""Pickles tables as references to their buffers, which are in files.

pyarrow pickles a table as an object per chunk of each column, and one per buffer.
"""

from __future__ import annotations

import io
import pickle
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    Place = tuple[int, int, int]
    """Number of a file, offset, size in bytes."""

    Locate = Callable[[pa.Buffer], "Place | bytes"]
    """Returns where a buffer is, or the bytes of a small one."""

    Layout = tuple[int, int, int, list[Place | bytes | None], "Layout | None"]
    """Of an array: length, offset, number of NULLs, buffers, and the values of a list."""


class TablePickler(pickle.Pickler):
    """Pickles values without the large buffers of the tables in them."""

    def __init__(self, stream: io.BytesIO, locate: Locate) -> None:
        """Write to ``stream``; ``locate`` returns where a buffer is."""
        super().__init__(stream, protocol=5)
        self._locate = locate

    def persistent_id(self, value: object) -> Any:  # noqa: ANN401 - None or a persistent id
        """Return the persistent id of a table; None for any other value."""
        if not isinstance(value, pa.Table):
            return None
        columns = [self._describe(column) for column in value.columns]
        return value.schema.serialize().to_pybytes(), pickle.dumps(columns, protocol=5)

    def _describe(self, column: pa.ChunkedArray) -> list[Layout] | pa.ChunkedArray:
        """Return the layouts of a column's chunks, or the column itself if its type is rare."""
        kind = column.type
        if pa.types.is_list(kind):
            kind = kind.value_type
        if pa.types.is_nested(kind) or not kind.num_buffers or pa.types.is_dictionary(kind):
            return column
        return [self._lay_out(chunk) for chunk in column.chunks]

    def _lay_out(self, array: pa.Array) -> Layout:
        buffers, values = array.buffers(), None
        if isinstance(array, pa.ListArray):
            buffers, values = buffers[:2], self._lay_out(array.values)
        places = [each if each is None else self._locate(each) for each in buffers]
        return len(array), array.offset, array.null_count, places, values


class TableUnpickler(pickle.Unpickler):
    """Reads values written by ``TablePickler``."""

    def __init__(self, data: bytes, files: list[pa.Buffer]) -> None:
        """Read ``data``; ``files`` are all files with buffers, by number."""
        super().__init__(io.BytesIO(data))
        self._files = files

    def persistent_load(self, pid: Any) -> pa.Table:  # noqa: ANN401 - made by the pickler
        """Return the table of a persistent id; its buffers are slices of the files."""
        schema, described = _read_schema(pid[0]), pickle.loads(pid[1])  # noqa: S301 - our own bytes
        columns = [
            column
            if isinstance(column, pa.ChunkedArray)
            else pa.chunked_array([self._build(kind, layout) for layout in column], kind)
            for kind, column in zip(schema.types, described, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def _build(self, kind: pa.DataType, layout: Layout) -> pa.Array:
        length, offset, nulls, places, values = layout
        children = None if values is None else [self._build(kind.value_type, values)]
        buffers = [each if each is None else self._find(each) for each in places]
        return pa.Array.from_buffers(kind, length, buffers, nulls, offset, children)

    def _find(self, place: Place | bytes) -> pa.Buffer:
        if isinstance(place, bytes):
            return pa.py_buffer(place)
        number, at, size_bytes = place
        return self._files[number].slice(at, size_bytes)


@lru_cache(256)
def _read_schema(data: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(data))
