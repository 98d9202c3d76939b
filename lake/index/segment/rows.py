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

from tonlake.lake.file.rows import item_bytes, list_values
from tonlake.lake.index.segment.file import HASH_BYTES, SegmentFile, SegmentWriter
from tonlake.lake.schema import TABLES

_LEVEL = 3

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

_encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(list[Any]).decode


class Pool:
    """The 32-byte values of a segment by number, while it is composed."""

    def __init__(self) -> None:
        """Start without any."""
        self.values = pa.array([], _HASH)

    def number(self, tables: Sequence[pa.Table]) -> list[pa.Table]:
        """Return tables with numbers in place of 32-byte values, which get them as they appear."""
        columns = [column for table in tables for column in table.columns]
        given = [each for column in columns for chunk in column.chunks for each in _flatten(chunk)]
        kept = [self.values, *given]
        encoded = pa.chunked_array(kept, _HASH).dictionary_encode()
        if encoded.num_chunks:
            self.values = encoded.chunk(0).dictionary
        ready = (chunk.indices for chunk in encoded.chunks)  # Arrow leaves out empty ones
        numbers = [next(ready) if len(values) else _NO_NUMBERS for values in kept]
        rest = iter(numbers[1:])
        return [_replace_values(table, rest) for table in tables]


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
        amounts = [None if value is None else int(value) for value in column.to_pylist()]
        amounts = [str(each) if each and abs(each) > _MAX_INT else each for each in amounts]
    return amounts


def encode_rows(columns: Iterable[Iterable[Any]]) -> list[bytes]:
    """Return the MessagePack of each row."""
    return [_encode(row) for row in zip(*columns, strict=True)]


def write_rows(writer: SegmentWriter, tables: dict[str, list[bytes]], *, packed: bool) -> None:
    """Write the rows of all tables; ``packed``: in frames, if they are many."""
    size = sum(map(len, (row for rows in tables.values() for row in rows)))
    dictionary = b""
    if packed:
        samples = [row for rows in tables.values() for row in rows[:: 1 + len(rows) // _SAMPLES]]
        dictionary = _train(samples, size, _DICTIONARY_BYTES)
        pack = _make_pack(dictionary, _LEVEL)
        for rows in tables.values():
            rows[:] = map(pack, rows)
    writer.add(DICTIONARY, pa.array(dictionary, pa.uint8()))
    for name, rows in tables.items():
        writer.add(f"{name}.rows", pa.array(rows, pa.binary()))


_LEAST_SAMPLES = 8


def _train(samples: Sequence[bytes], size: int, most: int) -> bytes:
    """Return a dictionary from samples of ``size`` bytes, of at most ``most``; none if few."""
    if size < _MIN_BYTES or len(samples) < _LEAST_SAMPLES:
        return b""
    data: list[bytes | bytearray | memoryview] = [*samples]
    room = min(most, size // _DICTIONARY_SHARE)
    return zstandard.train_dictionary(room, data, **_COVER).as_bytes()


def _make_pack(dictionary: bytes, level: int) -> Callable[[bytes], bytes]:
    """Return what makes a frame of bytes with a dictionary; without one they stay as they are."""
    if not dictionary:
        return bytes
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_dict_id=False
    )
    kept = zstandard.ZstdCompressionDict(dictionary)
    return zstandard.ZstdCompressor(dict_data=kept, compression_params=parameters).compress


class _Frames:
    """Unpacks what ``_make_pack`` packed with a dictionary."""

    def __init__(self, dictionary: bytes) -> None:
        self._unpack: Callable[[bytes], bytes] | None = None
        if dictionary:
            self._unpack = zstandard.ZstdDecompressor(
                dict_data=zstandard.ZstdCompressionDict(dictionary),
                format=zstandard.FORMAT_ZSTD1_MAGICLESS,
            ).decompress
        self._lock = Lock()  # a decompressor serves one thread at a time

    def unpack(self, packed: list[bytes]) -> list[bytes]:
        if self._unpack is None:
            return packed
        with self._lock:
            return list(map(self._unpack, packed))


class SegmentRows:
    """The 32-byte values of an open segment, and the decoder of its rows."""

    def __init__(self, file: SegmentFile) -> None:
        """Take the arrays of an open segment."""
        self.data, self.hashes = file.data, file.start_of(HASHES)
        """All bytes, and where the 32-byte values begin in them."""
        self.values = file.view(HASHES)
        """The 32-byte values."""
        self._frames = _Frames(bytes(file.numbers(DICTIONARY)))

    def hash_of(self, number: int) -> bytes:
        """Return a 32-byte value by its number."""
        start = self.hashes + number * HASH_BYTES
        return self.data[start : start + HASH_BYTES]

    def read(self, ends: memoryview, start: int, rows: Iterable[int]) -> Iterator[list[Any]]:
        """Yield rows as they were encoded; they begin at ``start``, with offsets ``ends``."""
        data = self.data
        packed = [data[start + ends[row] : start + ends[row + 1]] for row in rows]
        return map(decode, self._frames.unpack(packed))

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


BAGS, BAG_DICTIONARY = "transactions.bags", "transactions.bags.dictionary"

TOGETHER = 32
"""Bags in a frame, measured on a genuine network: 102 bytes a bag; of 16, 108 bytes; of 64, 98."""

_BAG_LEVEL = 1
"""Level 3 takes 2 % fewer bytes and half as much time again."""

_BAG_SAMPLES, _BAG_DICTIONARY_BYTES = 500, 1 << 16

_Known = tuple[bytes, bytes]
"""The hashes of a transaction and of the state after it."""

_Stripped = tuple[bytes, list[int]] | None
_decode_bags = msgspec.msgpack.Decoder(list[_Stripped]).decode


def write_bags(
    writer: SegmentWriter,
    bags: pa.Array,
    places: pa.Array,
    known: Sequence[pa.Array],
    *,
    packed: bool,
) -> None:
    """Write bags at places, which are in the order of accounts, as frames of MessagePack arrays.

    Neighbours share addresses and shapes, and a page of an account's history is in few frames.
    ``known`` are, in the same order, the hashes of the transactions and of the states after them:
    what bags have of these is left out. None is a bag that an earlier version did not store.
    """
    hashes, states = map(item_bytes, known)

    def encode(start: int, count: int) -> bytes:
        held = bags.take(places.slice(start, count)).to_pylist()
        first = max(start - 1, 0)
        span = slice(first * HASH_BYTES, (start + count) * HASH_BYTES)
        own = list(zip(_cut(hashes[span]), _cut(states[span]), strict=True))
        return _encode(
            list(map(_strip, held, own[start - first :], own if start else [own[0], *own]))
        )

    dictionary = b""
    if packed:
        step = 1 + len(places) // _BAG_SAMPLES
        samples = [encode(start, 1) for start in range(0, len(places), step)]
        dictionary = _train(samples, sum(map(len, samples)) * step, _BAG_DICTIONARY_BYTES)
    pack = _make_pack(dictionary, _BAG_LEVEL)
    frames = [pack(encode(start, TOGETHER)) for start in range(0, len(places), TOGETHER)]
    writer.add(BAG_DICTIONARY, pa.array(dictionary, pa.uint8()))
    writer.add(BAGS, pa.array(frames, pa.binary()))


def _cut(values: memoryview) -> list[bytes]:
    """Return 32-byte values."""
    data = bytes(values)
    return [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]


def _list_known(own: _Known, previous: _Known) -> tuple[bytes, ...]:
    """Return what a bag is likely to have: its states, and the hash of the previous transaction.

    That is four bits further on in a bag: its first and last four bits are left.
    """
    moved = (int.from_bytes(previous[0]) << 4).to_bytes(HASH_BYTES + 1)[1:HASH_BYTES]
    return own[1], previous[1], moved, previous[0]


def _strip(bag: bytes | None, own: _Known, previous: _Known) -> _Stripped:
    """Return a bag without what is known, and where each was; -1: nowhere."""
    if bag is None:
        return None
    places = []
    for value in _list_known(own, previous):
        at = bag.find(value)
        places.append(at)
        if at >= 0:
            bag = bag[:at] + bag[at + len(value) :]
    return bag, places


class SegmentBags:
    """The bags of an open segment, by their places in the order of accounts."""

    def __init__(self, file: SegmentFile, rows: SegmentRows, states: memoryview) -> None:
        """Take the arrays of an open segment; ``states`` are the numbers of the states after."""
        self._data, (self._ends, self._start) = file.data, file.rows(BAGS)
        self._hash_of, self._states = rows.hash_of, states
        self._order = file.numbers("account.transaction")
        self._frames = _Frames(bytes(file.numbers(BAG_DICTIONARY)))

    def read(self, places: Sequence[int]) -> list[bytes | None]:
        """Return the bags at some places, in the same order."""
        numbers = list({place // TOGETHER for place in places})
        ends = [(self._start + self._ends[at], self._start + self._ends[at + 1]) for at in numbers]
        packed = [self._data[start:end] for start, end in ends]
        frames = dict(zip(numbers, map(_decode_bags, self._frames.unpack(packed)), strict=True))
        return [self._complete(frames[at // TOGETHER][at % TOGETHER], at) for at in places]

    def _complete(self, stripped: _Stripped, place: int) -> bytes | None:
        """Return a bag from what was left of it."""
        if stripped is None:
            return None
        bag, places = stripped
        known = _list_known(self._know(place), self._know(max(place - 1, 0)))
        for value, at in zip(reversed(known), reversed(places), strict=True):
            if at >= 0:
                bag = bag[:at] + value + bag[at:]
        return bag

    def _know(self, place: int) -> _Known:
        row = self._order[place]
        return self._hash_of(row), self._hash_of(self._states[row])
