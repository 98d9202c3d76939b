"""Text and bytes that run over several cells, and text with a length in front."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.body.codec import Codec, Value, Work, expect_number, expect_object, expect_text
from ingest.cell.build import CellBuilder
from ingest.errors import BodyError

if TYPE_CHECKING:
    from ingest.cell.slice import CellSlice

_BYTES_PER_CELL = 127
_LENGTH_BITS = 8


def load_snake(source: CellSlice, work: Work) -> bytes:
    """Read whole bytes to the end of the cell, then those of the only child, and so on.

    Raises:
        BodyError: bits that make no whole byte, more than one child, or too many cells.
    """
    parts = []
    while True:
        if source.bits_left % 8 or source.refs_left > 1:
            raise BodyError(f"cell {source.cell} is no part of a text")
        parts.append(source.load_bytes(source.bits_left // 8))
        if not source.refs_left:
            return b"".join(parts)
        source = source.tree.slice(source.load_ref())
        work.visit()


def store_snake(data: bytes, target: CellBuilder) -> None:
    """Store bytes: as many as fit into the cell, the others into a chain of children."""
    room = (_BYTES_PER_CELL * 8 - target.bits) // 8
    head, tail = data[:room], data[room:]
    cuts = range(0, len(tail), _BYTES_PER_CELL)
    child: int | None = None
    for cut in reversed(cuts):
        part = CellBuilder(target.tree).store_bytes(tail[cut : cut + _BYTES_PER_CELL])
        child = (part if child is None else part.store_ref(child)).end()
    target.store_bytes(head)
    if child is not None:
        target.store_ref(child)


class SnakeText(Codec):
    """UTF-8 text to the end of the cell and of the chain of its children."""

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read text; bytes that are no UTF-8 are refused."""
        return read_utf8(load_snake(source, work))

    def encode(self, value: Value, target: CellBuilder) -> None:
        """Store text."""
        store_snake(expect_text(value).encode(), target)


class SnakeBytes(Codec):
    """Bytes to the end of the cell and of the chain of its children."""

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read upper-case hexadecimal text."""
        return load_snake(source, work).hex().upper()

    def encode(self, value: Value, target: CellBuilder) -> None:
        """Store hexadecimal text."""
        try:
            store_snake(bytes.fromhex(expect_text(value)), target)
        except ValueError as error:
            raise BodyError(f"{value!r} is no hexadecimal text") from error


class ShortText(Codec):
    """Text of at most 255 bytes after its length. TL-B: telemint_text of the telemint contracts."""

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read an object of ``len`` and ``text``."""
        del work
        count = source.load_uint(_LENGTH_BITS)
        text = read_utf8(source.load_bytes(count))
        return {"@type": "telemint_text", "len": str(count), "text": text}

    def encode(self, value: Value, target: CellBuilder) -> None:
        """Store such an object."""
        fields = expect_object(value, "len", "text")
        text = expect_text(fields["text"]).encode()
        if expect_number(fields["len"]) != len(text):
            raise BodyError(f"{len(text)} bytes of text with length {fields['len']}")
        target.store_uint(len(text), _LENGTH_BITS).store_bytes(text)


class ChunkedText(Codec):
    """Text in chunks: a number of chunks, then length, bytes and the next chunk in a child.

    TL-B: ``text$_ chunks:(## 8) rest:(TextChunks chunks) = Text`` of TEP-64 and TEP-81.
    """

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read an object of ``chunks`` and ``text``."""
        chunks = source.load_uint(_LENGTH_BITS)
        data = b""
        part = source
        for left in range(chunks, 0, -1):
            data += part.load_bytes(part.load_uint(_LENGTH_BITS))
            if left > 1:
                part = part.tree.slice(part.load_ref())
                work.visit()
        if part is not source and (part.bits_left or part.refs_left):
            raise BodyError("a chunk of text is followed by something")
        return {"@type": "text", "chunks": str(chunks), "text": read_utf8(data)}

    def encode(self, value: Value, target: CellBuilder) -> None:
        """Store such an object; the chunks but the last are as long as possible."""
        fields = expect_object(value, "chunks", "text")
        data = expect_text(fields["text"]).encode()
        chunks = expect_number(fields["chunks"])
        target.store_uint(chunks, _LENGTH_BITS)
        if not chunks:
            _check_spent(data)
            return
        room = (_BYTES_PER_CELL * 8 - target.bits) // 8 - 1
        parts = [data[:room]]
        step = _BYTES_PER_CELL - 1
        parts += [
            data[room + cut : room + cut + step] for cut in range(0, step * (chunks - 1), step)
        ]
        _check_spent(data[sum(map(len, parts)) :])
        child: int | None = None
        for part in reversed(parts[1:]):
            cell = CellBuilder(target.tree).store_uint(len(part), _LENGTH_BITS).store_bytes(part)
            child = (cell if child is None else cell.store_ref(child)).end()
        target.store_uint(len(parts[0]), _LENGTH_BITS).store_bytes(parts[0])
        if child is not None:
            target.store_ref(child)


def _check_spent(data: bytes) -> None:
    """Refuse text that its chunks cannot hold."""
    if data:
        raise BodyError(f"{len(data)} bytes of text too many for the chunks")


def read_utf8(data: bytes) -> str:
    """Return bytes as text; raises BodyError when they are no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BodyError("bytes that are no UTF-8 text") from error
