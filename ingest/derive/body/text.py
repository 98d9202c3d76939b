"""Codecs of text and bytes in chains of cells, and of text with a length prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.derive.body.codec import Codec, Work
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


def read_words(source: CellSlice) -> bytes:
    """Return the bytes of a comment: the whole bytes of the cell, of its first child, and so on.

    Wallets show such a text, whatever other references and bits the cells have. Raises BocError at
    an exotic cell.
    """
    parts = []
    while True:
        parts.append(source.load_bytes(source.bits_left // 8))
        if not source.refs_left:
            return b"".join(parts)
        source = source.tree.slice(source.load_ref())


class CommentText(Codec):
    """UTF-8 text of a comment, which takes the whole cell."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read text; raise BodyError for invalid UTF-8."""
        del work
        text = read_utf8(read_words(source.copy()))
        source.skip(source.bits_left)
        source.ref += source.refs_left
        return write_text(text)


class SnakeText(Codec):
    """UTF-8 text to the end of the cell and of the chain of its children."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read text; raise BodyError for invalid UTF-8."""
        return write_text(read_utf8(load_snake(source, work)))


class SnakeBytes(Codec):
    """Bytes to the end of the cell and of the chain of its children."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read uppercase hexadecimal text."""
        return f'"{load_snake(source, work).hex().upper()}"'


class ShortText(Codec):
    """Text of at most 255 bytes after its length. TL-B: telemint_text of the telemint contracts."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read an object of ``len`` and ``text``."""
        del work
        count = source.load_uint(_LENGTH_BITS)
        text = read_utf8(source.load_bytes(count))
        return f'{{"@type":"telemint_text","len":"{count}","text":{write_text(text)}}}'


class ChunkedText(Codec):
    """Text in chunks: the number of chunks, then length, bytes and the next chunk in a child.

    TL-B: ``text$_ chunks:(## 8) rest:(TextChunks chunks) = Text`` of TEP-64 and TEP-81.
    """

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read an object of ``chunks`` and ``text``."""
        chunks = source.load_uint(_LENGTH_BITS)
        data = bytearray()
        part = source
        for left in range(chunks, 0, -1):
            data += part.load_bytes(part.load_uint(_LENGTH_BITS))
            if left > 1:
                part = part.tree.slice(part.load_ref())
                work.visit()
        if part is not source and (part.bits_left or part.refs_left):
            raise BodyError("the last chunk of a text is followed by data")
        text = write_text(read_utf8(data))
        return f'{{"@type":"text","chunks":"{chunks}","text":{text}}}'


def read_utf8(data: bytes | bytearray) -> str:
    """Return bytes as text; raise BodyError for invalid UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BodyError("invalid UTF-8 text") from error


def write_text(text: str) -> str:
    """Return text as JSON."""
    return msgspec.json.encode(text).decode()
