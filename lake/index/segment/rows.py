"""Copies of rows: each is a MessagePack array of the columns, alone in a zstd frame.

The frames of a segment share one trained dictionary, and have no magic number; a segment too small
to train one, or in memory, has no frames. Values of 32 bytes are numbers of the segment's ``hash``,
which has each once: the hash of the transaction in each row, then all others. Amounts of more than
63 bits are text.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import zstandard

from tonlake.lake.file.rows import list_values
from tonlake.lake.index.segment.file import HASH_BYTES
from tonlake.lake.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tonlake.lake.index.segment.file import SegmentFile, SegmentWriter

DICTIONARY = "dictionary"
HASHES = "hash"

_LEVEL = 3
_SAMPLES = 4_000
"""Rows of each table from which a dictionary is trained."""

_DICTIONARY_BYTES = 1 << 16
_MIN_BYTES = 1 << 20
"""Rows of fewer bytes are stored as they are: a dictionary would not pay."""

_MAX_INT = (1 << 63) - 1

_encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(list[Any]).decode


class Pool:
    """The 32-byte values of a segment by number, while it is composed."""

    def __init__(self, first: Iterable[bytes]) -> None:
        """Take the values that have the first numbers, each once."""
        self._numbers = {value: number for number, value in enumerate(first)}

    def number(self, values: Iterable[bytes | None]) -> list[int | None]:
        """Return the numbers of values, and remember them; None for NULL."""
        numbers, found = self._numbers, []
        for value in values:
            number = numbers.get(value) if value is not None else None
            if number is None and value is not None:
                number = numbers[value] = len(numbers)
            found.append(number)
        return found

    def write(self, writer: SegmentWriter) -> None:
        """Write all values."""
        data = pa.py_buffer(b"".join(self._numbers))
        kind = pa.binary(HASH_BYTES)
        writer.add(HASHES, pa.Array.from_buffers(kind, len(self._numbers), [None, data]))


def list_columns(rows: pa.Table, names: Sequence[str], pool: Pool) -> list[list[Any]]:
    """Return columns as MessagePack can have them, with numbers for 32-byte values."""
    columns = []
    for name in names:
        values, kind = list_values(rows[name]), rows.schema.field(name).type
        if pa.types.is_fixed_size_binary(kind):
            values = pool.number(values)
        elif pa.types.is_list(kind) and pa.types.is_fixed_size_binary(kind.value_type):
            values = [None if each is None else pool.number(each) for each in values]
        elif pa.types.is_decimal(kind):
            values = [None if value is None else _write_amount(int(value)) for value in values]
        columns.append(values)
    return columns


def _write_amount(amount: int) -> int | str:
    return amount if -_MAX_INT <= amount <= _MAX_INT else str(amount)


def encode_rows(columns: Iterable[Iterable[Any]]) -> list[bytes]:
    """Return the MessagePack of each row."""
    return [_encode(row) for row in zip(*columns, strict=True)]


def write_rows(writer: SegmentWriter, tables: dict[str, list[bytes]], *, packed: bool) -> None:
    """Write the rows of all tables; ``packed``: in frames, if they are many."""
    size = sum(map(len, (row for rows in tables.values() for row in rows)))
    dictionary = b""
    if packed and size >= _MIN_BYTES:
        samples: list[bytes | bytearray | memoryview] = [
            row for rows in tables.values() for row in rows[:: 1 + len(rows) // _SAMPLES]
        ]
        dictionary = zstandard.train_dictionary(_DICTIONARY_BYTES, samples).as_bytes()
        parameters = zstandard.ZstdCompressionParameters.from_level(
            _LEVEL,
            format=zstandard.FORMAT_ZSTD1_MAGICLESS,
            write_dict_id=False,
        )
        pack = zstandard.ZstdCompressor(
            dict_data=zstandard.ZstdCompressionDict(dictionary), compression_params=parameters
        ).compress
        for rows in tables.values():
            rows[:] = map(pack, rows)
    writer.add(DICTIONARY, pa.array(dictionary, pa.uint8()))
    for name, rows in tables.items():
        writer.add(f"{name}.rows", pa.array(rows, pa.binary()))


class SegmentRows:
    """The 32-byte values of an open segment, and the decoder of its rows."""

    def __init__(self, file: SegmentFile) -> None:
        """Take the arrays of an open segment."""
        self.data, self.hashes = file.data, file.start_of(HASHES)
        """All bytes, and where the 32-byte values begin in them."""
        self.values = file.view(HASHES)
        """The 32-byte values."""
        dictionary = bytes(file.numbers(DICTIONARY))
        self._unpack: Callable[[bytes], bytes] | None = None
        if dictionary:
            self._unpack = zstandard.ZstdDecompressor(
                dict_data=zstandard.ZstdCompressionDict(dictionary),
                format=zstandard.FORMAT_ZSTD1_MAGICLESS,
            ).decompress
        self._lock = Lock()  # a decompressor serves one thread at a time

    def hash_of(self, number: int) -> bytes:
        """Return a 32-byte value by its number."""
        start = self.hashes + number * HASH_BYTES
        return self.data[start : start + HASH_BYTES]

    def read(self, ends: memoryview, start: int, rows: Iterable[int]) -> list[list[Any]]:
        """Return rows as they were encoded; they begin at ``start``, with offsets ``ends``."""
        data = self.data
        packed = [data[start + ends[row] : start + ends[row + 1]] for row in rows]
        if self._unpack is None:
            return list(map(decode, packed))
        with self._lock:
            found = list(map(self._unpack, packed))
        return list(map(decode, found))

    def fill(self, rows: Iterable[list[Any]], places: Sequence[int]) -> None:
        """Replace the numbers of 32-byte values at some places of rows."""
        data, first = self.data, self.hashes
        for values in rows:
            for at in places:
                number = values[at]
                if number is not None:
                    start = first + number * HASH_BYTES
                    values[at] = data[start : start + HASH_BYTES]


def read_amounts(rows: Iterable[list[Any]], places: Sequence[int]) -> None:
    """Replace amounts that are text at some places of rows."""
    for values in rows:
        for at in places:
            if type(values[at]) is str:
                values[at] = int(values[at])


def places_of(table: str, names: Sequence[str], *types: str) -> tuple[int, ...]:
    """Return the positions of the columns of some types among ``names``."""
    kinds = {column.name: column.type for column in TABLES[table].columns}
    return tuple(at for at, name in enumerate(names) if kinds[name] in types)
