"""Pictures of tokens: which bytes are one that a page may show, and of how many pixels.

PNG, JPEG, GIF and WebP; what the server says of their type plays no part. SVG is a document that
can hold scripts and name other hosts: it is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.errors import ContentInvalid

if TYPE_CHECKING:
    from collections.abc import Callable

PICTURE_BYTES = 1 << 21
"""Largest picture that is fetched."""
MOST_PIXELS = 1 << 24
"""Of one picture: a small file can claim far more, which a browser would make room for."""

Size = tuple[int, int]

_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers SOF of JPEG, which give the size; the three others in this range do not."""


class Picture(NamedTuple):
    """A picture: its media type, and its bytes."""

    kind: str
    body: bytes


def read_picture(body: bytes) -> Picture:
    """Return a picture whose first bytes were checked.

    Raises:
        ContentInvalid: it is of none of the types, damaged, or of too many pixels.
    """
    for start, kind, measure in _FORMATS:
        if body.startswith(start):
            try:
                width, height = measure(body)
            except IndexError as error:
                raise ContentInvalid(f"a damaged picture of type {kind}") from error
            if not 0 < width * height <= MOST_PIXELS:
                raise ContentInvalid(f"a picture of {width} by {height} pixels")
            return Picture(kind, body)
    raise ContentInvalid("no picture of type PNG, JPEG, GIF or WebP")


def _number(body: bytes, at: int, size: int, order: str = "little") -> int:
    """Return the number that begins at a byte; IndexError where the bytes end before."""
    if at + size > len(body):
        raise IndexError
    part = body[at : at + size]
    return int.from_bytes(part, "big" if order == "big" else "little")


def _measure_png(body: bytes) -> Size:
    return _number(body, 16, 4, "big"), _number(body, 20, 4, "big")


def _measure_gif(body: bytes) -> Size:
    return _number(body, 6, 2), _number(body, 8, 2)


def _measure_webp(body: bytes) -> Size:
    """Read the first chunk (RFC 9649): extended, without loss, or with loss."""
    chunk = body[8:16]
    if chunk == b"WEBPVP8X":
        return _number(body, 24, 3) + 1, _number(body, 27, 3) + 1
    if chunk == b"WEBPVP8L":
        bits = _number(body, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"WEBPVP8 ":
        return _number(body, 26, 2) & 0x3FFF, _number(body, 28, 2) & 0x3FFF
    raise IndexError


def _measure_jpeg(body: bytes) -> Size:
    """Pass over segments up to the one that gives the size."""
    at = 2
    while True:
        marker = _number(body, at, 2, "big")
        if marker >> 8 != 0xFF:  # noqa: PLR2004 - what markers begin with
            raise IndexError
        if marker & 0xFF in _JPEG_SIZES:
            return _number(body, at + 7, 2, "big"), _number(body, at + 5, 2, "big")
        at += 2 + max(_number(body, at + 2, 2, "big"), 2)


_FORMATS: tuple[tuple[bytes, str, Callable[[bytes], Size]], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png", _measure_png),
    (b"\xff\xd8\xff", "image/jpeg", _measure_jpeg),
    (b"GIF87a", "image/gif", _measure_gif),
    (b"GIF89a", "image/gif", _measure_gif),
    (b"RIFF", "image/webp", _measure_webp),
)
"""First bytes, media type, and what reads width and height."""
