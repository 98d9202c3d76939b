"""Recognizes pictures of tokens that a page may show, and reads their size in pixels.

PNG, JPEG, GIF and WebP; the media type sent by the server is ignored. SVG is rejected: it is a
document that can contain scripts and refer to other hosts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.errors import ContentInvalid

if TYPE_CHECKING:
    from collections.abc import Callable

PICTURE_BYTES = 1 << 21
"""Maximum size of a picture."""
MAX_PIXELS = 1 << 24
"""Maximum pixels of a picture: a small file can declare far more, which browsers would allocate."""

Size = tuple[int, int]

_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""SOF markers of JPEG, which have the size; the three others in this range do not."""


class Picture(NamedTuple):
    """The media type and the bytes of a picture."""

    kind: str
    body: bytes


def read_picture(body: bytes) -> Picture:
    """Return a picture after checking its header."""
    for start, kind, measure in _FORMATS:
        if body.startswith(start):
            try:
                width, height = measure(body)
            except IndexError as error:
                raise ContentInvalid(f"a damaged picture of type {kind}") from error
            if not 0 < width * height <= MAX_PIXELS:
                raise ContentInvalid(f"a picture of {width} by {height} pixels")
            return Picture(kind, body)
    raise ContentInvalid("no picture of type PNG, JPEG, GIF or WebP")


def _number(body: bytes, at: int, size: int, order: str = "little") -> int:
    """Return the integer at an offset; raise IndexError if the bytes end before."""
    if at + size > len(body):
        raise IndexError
    part = body[at : at + size]
    return int.from_bytes(part, "big" if order == "big" else "little")


def _measure_png(body: bytes) -> Size:
    return _number(body, 16, 4, "big"), _number(body, 20, 4, "big")


def _measure_gif(body: bytes) -> Size:
    return _number(body, 6, 2), _number(body, 8, 2)


def _measure_webp(body: bytes) -> Size:
    """Read the first chunk (RFC 9649): extended, lossless, or lossy."""
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
    """Skip segments up to the one with the size."""
    at = 2
    while True:
        marker = _number(body, at, 2, "big")
        if marker >> 8 != 0xFF:  # noqa: PLR2004 - the first byte of every marker
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
"""First bytes, media type, and a function that reads width and height."""
