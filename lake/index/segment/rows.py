"""Copies of rows: each is a MessagePack array of the columns, alone in a zstd frame.

The frames of a segment share one trained dictionary, and have no magic number; a segment too small
to train one, or in memory, has no frames. Values of 32 bytes are numbers of the segment's ``hash``,
which has each once: the hash of the transaction in each row, then all others. Amounts of more than
63 bits are text. Bags of cells of transactions are in frames of their own, many in each.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any

import msgspec
import pyarrow as pa
import zstandard

from tonlake.lake.file.rows import list_values
from tonlake.lake.index.segment.file import HASH_BYTES, SegmentFile, SegmentWriter
from tonlake.lake.schema import TABLES

BAGS = "transactions.bags"

TOGETHER = 64
"""Bags in a frame, measured on a genuine network: 182 bytes a bag and 21 us to read one; of 8, 236
bytes and 14 us; of 128, 175 bytes and 35 us. Alone a bag takes 458."""

_LEVEL = 3

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[bytes | None]).decode


def write_bags(writer: SegmentWriter, bags: pa.ChunkedArray, places: pa.Array) -> None:
    """Write bags at places, which are in the order of accounts, as frames of MessagePack arrays.

    Neighbours share addresses and shapes, and a page of an account's history is in one frame or
    two. None is a bag that an earlier version did not store.
    """
    pack = zstandard.ZstdCompressor(level=_LEVEL).compress
    parts = (places.slice(start, TOGETHER) for start in range(0, len(places), TOGETHER))
    frames: list[Any] = [pack(_encode(bags.take(part).to_pylist())) for part in parts]
    writer.add(BAGS, pa.array(frames, pa.binary()))


class SegmentBags:
    """The bags of an open segment, by their places in the order of accounts."""

    def __init__(self, file: SegmentFile) -> None:
        """Take the frames of an open segment.

        Raises:
            LakeCorrupt: there are none.
        """
        self._data = file.data
        self._ends, self._start = file.rows(BAGS)

    def read(self, places: Sequence[int]) -> list[bytes | None]:
        """Return the bags at some places, in the same order."""
        unpack = zstandard.ZstdDecompressor().decompress  # one serves one thread at a time
        frames: dict[int, list[bytes | None]] = {}
        for number in {place // TOGETHER for place in places}:
            first, last = (self._start + self._ends[at] for at in (number, number + 1))
            frames[number] = _decode(unpack(self._data[first:last]))
        return [frames[place // TOGETHER][place % TOGETHER] for place in places]


DICTIONARY = "dictionary"
HASHES = "hash"

_SAMPLES = 1_000
"""Rows of each table from which a dictionary is trained; of 4,000, those of many short rows get
too much of it: 17 % more bytes on a genuine network."""

_DICTIONARY_BYTES, _DICTIONARY_SHARE = 1 << 18, 32
"""Size of a dictionary: at most that, and at most this part of the rows."""

_COVER = {"k": 256, "d": 6}
"""Parameters of the training; to try many of them takes ten times as long for no fewer bytes."""

_MIN_BYTES = 1 << 20
"""Rows of fewer bytes are stored as they are: a dictionary would not pay."""

_MAX_INT = (1 << 63) - 1

decode = msgspec.msgpack.Decoder(list[Any]).decode


class Pool:
    """The 32-byte values of a segment by number, while it is composed."""

    def __init__(self) -> None:
        """Start without any."""
        self._values = pa.array([], _HASH)

    def number(self, tables: Sequence[pa.Table]) -> list[pa.Table]:
        """Return tables with numbers in place of 32-byte values, which get them as they appear."""
        columns = [column for table in tables for column in table.columns]
        given = [each for column in columns for chunk in column.chunks for each in _flatten(chunk)]
        kept = [self._values, *given]
        encoded = pa.chunked_array(kept, _HASH).dictionary_encode()
        if encoded.num_chunks:
            self._values = encoded.chunk(0).dictionary
        ready = (chunk.indices for chunk in encoded.chunks)  # Arrow leaves out empty ones
        numbers = [next(ready) if len(values) else _NO_NUMBERS for values in kept]
        rest = iter(numbers[1:])
        return [_replace_values(table, rest) for table in tables]

    def take(self, numbers: pa.Array) -> pa.Array:
        """Return values by number."""
        return self._values.take(numbers)

    def write(self, writer: SegmentWriter) -> None:
        """Write all values."""
        writer.add(HASHES, self._values)


_HASH = pa.binary(HASH_BYTES)
_NO_NUMBERS = pa.nulls(0, pa.int32())


def _flatten(chunk: pa.Array) -> list[pa.Array]:
    """Return the 32-byte values of a part of a column, which may have lists of them."""
    if chunk.type == _HASH:
        return [chunk]
    if pa.types.is_list(chunk.type) and chunk.type.value_type == _HASH:
        return [chunk.values]
    return []


def _replace_values(table: pa.Table, numbers: Iterator[pa.Array]) -> pa.Table:
    columns = []
    for column in table.columns:
        if column.type == _HASH:
            chunks = [next(numbers) for _ in column.chunks]
            columns.append(pa.chunked_array(chunks, pa.int32()))
        elif pa.types.is_list(column.type) and column.type.value_type == _HASH:
            chunks = [_relist(chunk, next(numbers)) for chunk in column.chunks]
            columns.append(pa.chunked_array(chunks, _NUMBERS))
        else:
            columns.append(column)
    return pa.table(columns, table.column_names)


_NUMBERS = pa.list_(pa.int32())


def _relist(lists: pa.Array, values: pa.Array) -> pa.Array:
    """Return lists of other values."""
    buffers = lists.buffers()[:2]
    return pa.Array.from_buffers(
        _NUMBERS, len(lists), buffers, offset=lists.offset, children=[values]
    )


def list_columns(rows: pa.Table, names: Iterable[str]) -> list[list[Any]]:
    """Return columns as MessagePack can have them."""
    return [
        _list_amounts(rows[name])
        if pa.types.is_decimal(rows[name].type)
        else list_values(rows[name])
        for name in names
    ]


def _list_amounts(column: pa.ChunkedArray) -> list[Any]:
    try:
        amounts: list[Any] = column.cast(pa.int64()).to_pylist()
    except pa.ArrowInvalid:  # some have more than 63 bits
        values = column.to_pylist()
        amounts = [None if value is None else _write_amount(int(value)) for value in values]
    return amounts


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
        room = min(_DICTIONARY_BYTES, size // _DICTIONARY_SHARE)
        dictionary = zstandard.train_dictionary(room, samples, **_COVER).as_bytes()
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
    return tuple(at for at, name in enumerate(names) if kinds.get(name) in types)
