"""The container of a segment: an Arrow IPC file with one row, whose columns are lists.

Each list is an array of the segment: numbers, 32-byte values, or rows of bytes. The file is mapped
into memory; nothing is copied before it is read. Any program that reads Arrow files can open it.
"""

import mmap
from array import array
from functools import lru_cache
from pathlib import Path
from struct import calcsize
from typing import IO, Any

import pyarrow as pa

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.ranges import Range

SEGMENT_FORMAT = 24
"""Version of the arrays in segments; up to 16, segments had a container of their own."""

HASH_BYTES = 32
_CODES = {pa.int64(): "q", pa.uint32(): "I", pa.int32(): "i", pa.uint8(): "B", pa.uint16(): "H"}
_FIRST, _LAST = b"first_mc_seqno", b"last_mc_seqno"


class SegmentWriter:
    """Collects the arrays of a segment."""

    def __init__(self) -> None:
        """Start without any."""
        self.arrays: dict[str, pa.Array] = {}

    def add(self, name: str, values: pa.Array | pa.ChunkedArray) -> None:
        """Add an array without NULL."""
        whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        self.arrays[name] = whole

    def write(self, stream: IO[bytes], mc_range: Range) -> None:
        """Write all arrays."""
        lists = [_wrap(each) for each in self.arrays.values()]
        first, last = (str(seqno).encode() for seqno in mc_range)
        row = pa.record_batch(lists, [*self.arrays])
        row = row.replace_schema_metadata({_FIRST: first, _LAST: last})
        with pa.ipc.new_file(stream, row.schema) as writer:
            writer.write_batch(row)


def _wrap(values: pa.Array) -> pa.Array:
    """Return an array of one list."""
    ends = pa.py_buffer(array("q", [0, len(values)]))
    kind = pa.large_list(values.type)
    return pa.Array.from_buffers(kind, 1, [None, ends], null_count=0, children=[values])


@lru_cache(8)
def open_row(file: "SegmentFile") -> pa.RecordBatch:
    """Return the row, which takes 300 KiB; few stay open, as opening one again takes 0.2 ms."""
    return pa.ipc.open_file(pa.py_buffer(file.data)).get_batch(0)


class SegmentFile:
    """An open segment: its range, its bytes, and views of its arrays."""

    def __init__(self, data: bytes | mmap.mmap, name: str) -> None:
        """Read the contents; LakeCorrupt: it is no segment or, on first use, lacks an array."""
        self.data, self.name = data, name
        self._bytes, self._address = memoryview(data), pa.py_buffer(data).address
        try:
            found = open_row(self).schema.metadata or {}
            self.mc_range = int(found[_FIRST]), int(found[_LAST])
        except (pa.ArrowInvalid, OSError, KeyError, ValueError) as error:
            raise LakeCorrupt(name, f"it is not an index segment ({error})") from error

    def numbers(self, name: str) -> memoryview:
        """Return an array of numbers."""
        values = self._values(name)
        start = self._start_of(values.buffers()[1])
        code: Any = _CODES[values.type]
        return self._bytes[start : start + len(values) * calcsize(code)].cast(code)

    def view(self, name: str) -> tuple[memoryview, int]:
        """Return an array of 32-byte values, and where it begins in ``data``."""
        values = self._values(name)
        start = self._start_of(values.buffers()[1])
        return self._bytes[start : start + len(values) * HASH_BYTES], start

    def rows(self, name: str) -> tuple[memoryview, int]:
        """Return the offsets of rows of bytes, and where their bytes begin in ``data``."""
        values = self._values(name)
        _, offsets, data = values.buffers()
        if not len(values):
            return memoryview(bytes(4)).cast("i"), 0
        ends = self._start_of(offsets)
        return self._bytes[ends : ends + (len(values) + 1) * 4].cast("i"), self._start_of(data)

    def _values(self, name: str) -> Any:  # noqa: ANN401 - an array
        try:
            return open_row(self).column(name).values
        except KeyError as error:
            raise LakeCorrupt(self.name, f"it lacks the array {name}") from error

    def _start_of(self, data: pa.Buffer | None) -> int:
        return 0 if data is None else data.address - self._address


def map_segment(lake_dir: Path, path: str) -> SegmentFile:
    """Map a segment of the lake into memory; LakeCorrupt: it is missing, or not a segment."""
    try:
        with (lake_dir / path).open("rb") as stream:
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise LakeCorrupt.unreadable(path, error) from error
    except ValueError as error:
        raise LakeCorrupt(path, f"it cannot be read ({error})") from error
    return SegmentFile(data, path)
