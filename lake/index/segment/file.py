r"""The file format of a segment: named arrays of packed numbers or bytes, one after the other.

Layout: ``TLRUN\x00\x01\n``, the arrays (each at a multiple of 8), a JSON table of contents, the
length of that table as 8 bytes little-endian, and the first eight bytes again. The file is read
through a memory map; only requested data is copied.

Packed numbers take as many bits as the widest of them needs, little-endian: the least number (8
bytes, signed), the count (8), the bits of each (1), the number of low bits cut off each before (1),
the coding (1), 5 zero bytes; then each number's difference from the least, one after the other, the
least significant bit first; then 8 zero bytes, so that each can be read as a part of one word.
Widths of 58 to 63 bits would not fit in a word with the bits before them, and become 64.

Coding 1 (Elias-Fano) is used for keys and ends of postings that ascend if it takes fewer bytes,
otherwise coding 0, which is faster to read. It stores only the low bits of each number there, as
many as make the greatest high part less than twice the count. After the zero bytes it has, for
every 64th number from the first on, the position of its bit (4 bytes), and then the bits
themselves: one is set at each number's high part plus its index, in words of 64. So a number takes
about two bits more than its low bits.
"""

from __future__ import annotations

import mmap
import struct
from typing import IO, TYPE_CHECKING, Any

import msgspec

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.index.segment.native import NATIVE

if TYPE_CHECKING:
    from array import array
    from collections.abc import Collection
    from pathlib import Path

    from tonlake.lake.log.ranges import Range

    Words = array[int] | memoryview
    Bytes = bytes | bytearray | memoryview


MAGIC = b"TLRUN\x00\x01\n"
_TAIL = struct.Struct("<Q8s")
_ALIGNMENT = 8
_BYTES, _NUMBERS = "B", "N"


def pack_numbers(values: Words, cut_bits: int = 0, *, shortest: bool = False) -> bytes:
    """Return packed signed 64-bit numbers, after cutting off the ``cut_bits`` low bits of each.

    ``shortest``: ascending numbers take fewer bytes and are slower to read.
    """
    packed: bytes = NATIVE.pack_numbers(values, cut_bits, shortest)
    return packed


def open_numbers(data: memoryview) -> Any:  # noqa: ANN401 - of the extension
    """Return packed numbers as a sequence with ``find``.

    Raises:
        ValueError: they are damaged.
    """
    return NATIVE.Numbers(data)


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The position of one array: ``code`` is N for packed numbers, or B for plain bytes."""

    code: str
    offset: int
    bytes: int


SEGMENT_FORMAT = 16
"""Version of the layout of segments that are written."""


class Contents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Table of contents of a segment; ``format`` stands there from 15 on."""

    first_mc_seqno: int
    last_mc_seqno: int
    rows: int
    parts: dict[str, Part]
    format: int = SEGMENT_FORMAT - 1


class SegmentWriter:
    """Writes a segment from front to back; ``begin`` opens a part, ``write`` appends to it."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Begin the file."""
        self._stream = stream
        self._at = stream.write(MAGIC)
        self._parts: dict[str, Part] = {}
        self._open: tuple[str, str, int] | None = None

    def begin(self, name: str, code: str = _BYTES) -> None:
        """Begin the array ``name``, of bytes by default."""
        self._end_part()
        self._at += self._stream.write(bytes(-self._at % _ALIGNMENT))
        self._open = (name, code, self._at)

    def write(self, data: Bytes) -> None:
        """Append to the array that was begun last."""
        self._at += self._stream.write(data)

    def add(self, name: str, data: Bytes) -> None:
        """Write an array of bytes."""
        self.begin(name)
        self.write(data)

    def add_numbers(
        self, name: str, values: Words, cut_bits: int = 0, *, shortest: bool = False
    ) -> None:
        """Write an array of numbers, packed as by ``pack_numbers``."""
        self.begin(name, _NUMBERS)
        self.write(pack_numbers(values, cut_bits, shortest=shortest))

    def finish(self, mc_range: Range, rows: int) -> None:
        """Write the table of contents."""
        self._end_part()
        table = msgspec.json.encode(Contents(*mc_range, rows, self._parts, SEGMENT_FORMAT))
        self._stream.write(table + _TAIL.pack(len(table), MAGIC))

    def _end_part(self) -> None:
        if self._open is not None:
            name, code, offset = self._open
            self._parts[name] = Part(code, offset, self._at - offset)
        self._open = None


class SegmentFile:
    """An open segment: its contents and arrays; numbers are sequences, bytes are views."""

    def __init__(
        self, data: bytes | mmap.mmap, name: str, only: Collection[str] | None = None
    ) -> None:
        """Read the table of contents, and open the arrays, or only those named by ``only``.

        Raises:
            LakeCorrupt: the bytes are not a segment.
        """
        self.data = data
        self.name = name
        view = memoryview(data)
        try:
            length, magic = _TAIL.unpack(view[-_TAIL.size :])
            if magic != MAGIC or view[: len(MAGIC)] != MAGIC:
                raise LakeCorrupt(name, "it is not an index segment")
            table = view[len(view) - _TAIL.size - length : -_TAIL.size]
            self.contents = msgspec.json.decode(table, type=Contents)
            self.arrays: dict[str, Any] = {
                name: _open_part(view[part.offset : part.offset + part.bytes], part.code)
                for name, part in self.contents.parts.items()
                if only is None or name in only
            }
        except (struct.error, msgspec.DecodeError, TypeError, ValueError) as error:
            raise LakeCorrupt(name, f"it is not an index segment ({error})") from error


def _open_part(view: memoryview, code: str) -> Any:  # noqa: ANN401 - bytes or numbers
    if code == _NUMBERS:
        return open_numbers(view)
    if code != _BYTES:
        raise ValueError(f"unknown code {code!r} of an array")
    return view


def map_segment(lake_dir: Path, path: str) -> SegmentFile:
    """Open a segment of the lake through a memory map.

    Raises:
        LakeCorrupt: it is missing, or not a segment.
    """
    return SegmentFile(map_file(lake_dir, path), path)


def map_file(lake_dir: Path, path: str) -> mmap.mmap:
    """Map a segment of the lake into memory; nothing is read yet.

    Raises:
        LakeCorrupt: it is missing, or empty.
    """
    try:
        with (lake_dir / path).open("rb") as stream:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise LakeCorrupt.unreadable(path, error) from error
    except ValueError as error:
        raise LakeCorrupt(path, f"it cannot be read ({error})") from error
