"""Codecs of text and bytes in chains of cells, and of text with a length prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.body.codec import Codec, Value, Work
from tonlake.ingest.derive.body.program import Op
from tonlake.ingest.errors import BodyError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice

_LENGTH_BITS = 8


def load_snake(source: CellSlice, work: Work) -> bytes:
    """Read the bytes to the end of the cell, then of its only child, and so on.

    Raises:
        BodyError: a partial byte, more than one child, or too many cells.
    """
    parts = []
    while True:
        if source.bits_left % 8 or source.refs_left > 1:
            raise BodyError(f"cell {source.cell} is not part of a snake text")
        parts.append(source.load_bytes(source.bits_left // 8))
        if not source.refs_left:
            return b"".join(parts)
        source = source.tree.slice(source.load_ref())
        work.visit()


class SnakeText(Codec):
    """UTF-8 text to the end of the cell and of the chain of its children."""

    op = Op.SNAKE_TEXT

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read text; raise BodyError for invalid UTF-8."""
        return read_utf8(load_snake(source, work))


class SnakeBytes(Codec):
    """Bytes to the end of the cell and of the chain of its children."""

    op = Op.SNAKE_BYTES

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read uppercase hexadecimal text."""
        return load_snake(source, work).hex().upper()


class ShortText(Codec):
    """Text of at most 255 bytes after its length. TL-B: telemint_text of the telemint contracts."""

    op = Op.SHORT_TEXT

    def decode(self, source: CellSlice, work: Work) -> Value:
        """Read an object of ``len`` and ``text``."""
        del work
        count = source.load_uint(_LENGTH_BITS)
        text = read_utf8(source.load_bytes(count))
        return {"@type": "telemint_text", "len": str(count), "text": text}


class ChunkedText(Codec):
    """Text in chunks: the number of chunks, then length, bytes and the next chunk in a child.

    TL-B: ``text$_ chunks:(## 8) rest:(TextChunks chunks) = Text`` of TEP-64 and TEP-81.
    """

    op = Op.CHUNKED_TEXT

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
            raise BodyError("the last chunk of a text is followed by data")
        return {"@type": "text", "chunks": str(chunks), "text": read_utf8(data)}


def read_utf8(data: bytes) -> str:
    """Return bytes as text; raise BodyError for invalid UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BodyError("invalid UTF-8 text") from error
