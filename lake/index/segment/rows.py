"""Copies of rows: each is a MessagePack array of the columns, alone in a zstd frame.

The frames of a segment share one trained dictionary, and have no magic number; a segment too small
to train one, or in memory, has no frames. Values of 32 bytes are numbers of the segment's ``hash``,
which has each once: the hash of the transaction in each row, then all others. Amounts of more than
63 bits are text. Bags of cells of transactions are in frames of their own, many in each, without
most of what the rows have.
"""

import mmap
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice, repeat
from operator import attrgetter
from threading import Lock
from typing import Any
from weakref import finalize

import msgspec
import pyarrow as pa
import zstandard

from tonlake.lake.file.rows import list_values
from tonlake.lake.index.segment.declared import Record
from tonlake.lake.index.segment.file import HASH_BYTES, SegmentFile, SegmentWriter, open_row
from tonlake.lake.schema import TABLES

_LEVELS, _LEVEL = {"transactions": 5, "actions": 5}, 4
"""Compression levels of tables: above 4, only long rows become smaller; at 6, transactions take
3 % less, and twice the time."""

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

AT_ONCE = 4_096
"""Rows that are Python objects at a time."""

_BITS, _NO_HASH = 8, bytes(HASH_BYTES)

_encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(list[Any]).decode


class Pool:
    """The 32-byte values of a segment by number, while it is composed."""

    def __init__(self) -> None:
        """Start without any."""
        self.values = pa.array([], _HASH)

    def number(self, tables: Sequence[pa.Table], first: Sequence[pa.Array] = ()) -> list[pa.Table]:
        """Return tables with numbers in place of 32-byte values.

        Values get numbers as they appear: in ``first``, then in the columns of the tables.
        """
        columns = [column for table in tables for column in table.columns]
        given = [each for column in columns for chunk in column.chunks for each in _flatten(chunk)]
        kept = [self.values, *first, *given]
        encoded = pa.chunked_array(kept, _HASH).dictionary_encode()
        if encoded.num_chunks:
            self.values = encoded.chunk(0).dictionary
        ready = (chunk.indices for chunk in encoded.chunks)  # Arrow leaves out empty ones
        numbers = [next(ready) if len(values) else _NO_NUMBERS for values in kept]
        rest = iter(numbers[1 + len(first) :])
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
        for name, rows in tables.items():
            pack = _make_pack(dictionary, _LEVELS.get(name, _LEVEL))
            for at, row in enumerate(rows):
                rows[at] = pack(row)
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


@lru_cache(64)
def _open_frames(dictionary: memoryview) -> Callable[[list[bytes]], list[bytes]]:
    """Return what unpacks frames of a dictionary: up to 280 KiB, opened again in 0.2 ms."""
    if not len(dictionary):
        return list
    unpack = zstandard.ZstdDecompressor(
        dict_data=zstandard.ZstdCompressionDict(dictionary),
        format=zstandard.FORMAT_ZSTD1_MAGICLESS,
    ).decompress
    lock = Lock()  # a decompressor serves one thread at a time

    def unpack_all(packed: list[bytes]) -> list[bytes]:
        with lock:
            return list(map(unpack, packed))

    return unpack_all


class SegmentRows:
    """The 32-byte values of an open segment, and the decoder of its rows."""

    def __init__(self, file: SegmentFile) -> None:
        """Take the arrays of an open segment."""
        self.data, (self.values, self.hashes) = file.data, file.view(HASHES)
        """All bytes, the 32-byte values in them, and where these begin."""
        self._dictionary = file.numbers(DICTIONARY)
        if isinstance(file.data, mmap.mmap):  # what stays open keeps a removed file on the disk
            finalize(self, open_row.cache_clear)
            finalize(self, _open_frames.cache_clear)

    def hash_of(self, number: int) -> bytes:
        """Return a 32-byte value by its number."""
        start = self.hashes + number * HASH_BYTES
        return self.data[start : start + HASH_BYTES]

    def read(self, ends: memoryview, start: int, rows: Iterable[int]) -> Iterator[list[Any]]:
        """Yield rows as they were encoded; they begin at ``start``, with offsets ``ends``."""
        data = self.data
        packed = [data[start + ends[row] : start + ends[row + 1]] for row in rows]
        return map(decode, _open_frames(self._dictionary)(packed))

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

TOGETHER = 16
"""Bags in a frame, measured on a genuine network: 85 bytes a bag; of 32, 81 bytes, and half as
much time again to open a page of ten."""

_BAG_LEVEL = 1
"""Level 3 takes 2 % fewer bytes and half as much time again."""

_BAG_SAMPLES, _BAG_DICTIONARY_BYTES = 1_000, 1 << 16

OF_BAG = (
    *(("account_state_hash_before", 0), ("account_state_hash_after", 0), ("prev_trans_hash", 4)),
    *(("action_list_hash", 7), ("action_list_hash", 3)),
)
OF_BAG_MESSAGE = (("source", 7), ("destination", 2), ("body", 0))
"""What bags have of a transaction, and of each of its messages: columns, each with the bit of a
byte at which its values usually begin."""

_ONE_CELL, _ONE_CELL_BYTES = bytes.fromhex("b5ee9c7201010101"), 13
"""The beginning of a bag of one cell, and the length of all that precedes its data."""

_Columns = Mapping[str, Sequence[bytes | None]]

_decode_bags = msgspec.msgpack.Decoder(list[bytes | None]).decode

_PLACE_BYTES, _NOWHERE = 2, (1 << 16) - 1
"""In place of where a value was: it stayed in the bag, as all do that end after as many bytes."""


def list_known(rows: _Columns, messages: _Columns, counts: Iterable[int]) -> Iterator[list[bytes]]:
    """Yield what the bag of each row is likely to have of it, and of its number of messages."""
    of_rows = zip(*(_move(rows[name], bit) for name, bit in OF_BAG), strict=True)
    of_messages = zip(*(_move(messages[name], bit) for name, bit in OF_BAG_MESSAGE), strict=True)
    for known, count in zip(of_rows, counts, strict=True):
        yield [*known, *chain.from_iterable(islice(of_messages, count))]


def _move(values: Sequence[bytes | None], bit: int) -> list[bytes]:
    """Return the whole bytes of values that begin at a bit of a byte; of bodies, the data."""
    if not bit:
        return list(map(_cut_head, values))
    moved = _shift(b"".join([value or _NO_HASH for value in values]), bit)
    return [moved[at : at + HASH_BYTES - 1] for at in range(0, len(moved), HASH_BYTES)]


def _cut_head(value: bytes | None) -> bytes:
    """Return a hash, or the data of a body of one cell."""
    if value is None:
        return b""
    return value[_ONE_CELL_BYTES:] if value.startswith(_ONE_CELL) else value


def _shift(data: bytes, bit: int) -> bytes:
    """Return bytes that begin at a bit of the first byte, without the part in that byte."""
    return (int.from_bytes(data) << _BITS - bit).to_bytes(len(data) + 1)[1:]


def write_bags(
    writer: SegmentWriter,
    bags: pa.Array,
    order: pa.Array,
    know: Callable[[pa.Array], Iterable[list[bytes]]],
    *,
    packed: bool,
) -> None:
    """Write bags of rows in the order of accounts, as frames of MessagePack arrays.

    Neighbours share addresses and shapes, and a page of an account's history is in few frames. What
    ``know`` returns of rows is left out of their bags if they are packed. None is a bag that an
    earlier version did not store.
    """

    def strip(rows: pa.Array) -> list[bytes | None]:
        return list(map(_strip, bags.take(rows).to_pylist(), know(rows) if packed else repeat([])))

    dictionary = b""
    if packed:
        step = 1 + len(order) // _BAG_SAMPLES
        samples = [_encode([each]) for each in strip(order[::step])]
        dictionary = _train(samples, sum(map(len, samples)) * step, _BAG_DICTIONARY_BYTES)
    pack, frames = _make_pack(dictionary, _BAG_LEVEL), list[bytes]()
    for start in range(0, len(order), AT_ONCE):
        stripped = strip(order[start : start + AT_ONCE])
        parts = (stripped[at : at + TOGETHER] for at in range(0, len(stripped), TOGETHER))
        frames += map(pack, map(_encode, parts))
    writer.add(BAG_DICTIONARY, pa.array(dictionary, pa.uint8()))
    writer.add(BAGS, pa.array(frames, pa.binary()))


def _strip(bag: bytes | None, known: list[bytes]) -> bytes | None:
    """Return the number of known values, where each was, and the bag without them."""
    if bag is None:
        return None
    rest, places = bytearray(bag), array("H", (len(known),))
    for value in known:
        at = rest.find(value, 0, _NOWHERE)
        places.append(at & _NOWHERE)
        if at >= 0:
            del rest[at : at + len(value)]
    return places.tobytes() + rest


class SegmentBags:
    """The bags of an open segment, by their places in the order of accounts."""

    def __init__(self, file: SegmentFile) -> None:
        """Take the arrays of an open segment."""
        self._data, (self._ends, self._start) = file.data, file.rows(BAGS)
        self._dictionary = file.numbers(BAG_DICTIONARY)

    def read(self, places: Sequence[int], records: Iterable[Record]) -> list[bytes | None]:
        """Return the bags at some places, in the same order, given their transactions."""
        numbers = list({place // TOGETHER for place in places})
        ends = [(self._start + self._ends[at], self._start + self._ends[at + 1]) for at in numbers]
        packed = [self._data[start:end] for start, end in ends]
        unpacked = _open_frames(self._dictionary)(packed)
        frames = dict(zip(numbers, map(_decode_bags, unpacked), strict=True))
        stripped = (frames[at // TOGETHER][at % TOGETHER] for at in places)
        return list(map(_complete, stripped, records))


_read_row, _read_message = (
    attrgetter(*(name for name, _ in names)) for names in (OF_BAG, OF_BAG_MESSAGE)
)
_ROW_BITS, _MESSAGE_BITS = ([bit for _, bit in names] for names in (OF_BAG, OF_BAG_MESSAGE))


def _complete(stripped: bytes | None, record: Record) -> bytes | None:
    """Return a bag from what was left of it; only values that it had are moved."""
    if stripped is None:
        return None
    (count,) = array("H", stripped[:_PLACE_BYTES])
    end = (1 + count) * _PLACE_BYTES
    if not count:
        return stripped[end:]
    places, bag = array("H", stripped[_PLACE_BYTES:end]), bytearray(stripped[end:])
    known, bits = _read_row(record.row), _ROW_BITS + _MESSAGE_BITS * len(record.messages)
    for message in record.messages:
        known += _read_message(message)
    places.reverse()
    for at, value, bit in zip(places, reversed(known), reversed(bits), strict=True):
        if at != _NOWHERE:
            bag[at:at] = _shift(value or _NO_HASH, bit)[:-1] if bit else _cut_head(value)
    return bytes(bag)
