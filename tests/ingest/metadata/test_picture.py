"""Pictures: accepted types, their pixels, and refusals."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.metadata.conftest import send
from tests.ingest.metadata.test_download import make_downloader
from tonlake.ingest.errors import ContentInvalid
from tonlake.ingest.metadata.download import MAX_PIXELS, PICTURE_BYTES, read_picture

if TYPE_CHECKING:
    import ssl

    from tests.ingest.metadata.conftest import Host


def make_png(width: int, height: int) -> bytes:
    """Return the beginning of a PNG file."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def make_jpeg(width: int, height: int) -> bytes:
    """Return the beginning of a JPEG file: a segment of an application, then the size."""
    comment = struct.pack(">HH4s", 0xFFE0, 6, b"JFIF")
    return b"\xff\xd8" + comment + struct.pack(">HHBHH", 0xFFC2, 11, 8, height, width)


def make_webp(width: int, height: int, chunk: bytes = b"VP8X") -> bytes:
    """Return the beginning of a WebP file."""
    bodies = {
        b"VP8X": bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
        b"VP8L": b"\x2f" + (width - 1 | height - 1 << 14).to_bytes(4, "little"),
        b"VP8 ": bytes(6) + struct.pack("<HH", width | 0x4000, height),
    }
    return b"RIFF" + bytes(4) + b"WEBP" + chunk + bytes(4) + bodies[chunk]


PICTURES = [
    ("image/png", make_png),
    ("image/jpeg", make_jpeg),
    ("image/gif", lambda width, height: b"GIF89a" + struct.pack("<HH", width, height)),
    ("image/webp", make_webp),
    ("image/webp", lambda width, height: make_webp(width, height, b"VP8L")),
    ("image/webp", lambda width, height: make_webp(width, height, b"VP8 ")),
]


@pytest.mark.parametrize(("kind", "make"), PICTURES)
def test_types_and_sizes(kind: str, make: object) -> None:
    assert callable(make)
    assert read_picture(make(300, 200)).kind == kind
    with pytest.raises(ContentInvalid, match="16000 by 16000 pixels"):
        read_picture(make(16000, 16000))
    for end in range(6, len(make(300, 200))):
        with pytest.raises(ContentInvalid):
            read_picture(make(300, 200)[:end])


@pytest.mark.parametrize(
    "body",
    [
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"<?xml version='1.0'?><svg/>",
        b"<html>",
        b"",
        b"RIFF\0\0\0\0WAVEfmt ",
        make_png(0, 5),
        make_png(MAX_PIXELS, 2),
    ],
)
def test_what_is_no_picture_is_refused(body: bytes) -> None:
    with pytest.raises(ContentInvalid):
        read_picture(body)


@given(st.sampled_from([b"\xff\xd8\xff", b"RIFF0000WEBP", b"GIF89a", b""]), st.binary(max_size=99))
def test_any_bytes_are_read_or_refused(start: bytes, rest: bytes) -> None:
    with suppress(ContentInvalid):
        assert read_picture(start + rest).body == start + rest


def test_the_bytes_decide_not_the_type(host: Host, trust: ssl.SSLContext) -> None:
    body = make_png(8, 8)
    host.answers |= {
        "/plain": send(body, "application/octet-stream"),
        "/html": send(body, "text/html"),
        "/svg": send(body, "image/svg+xml"),
        "/named": send(b"<svg/>", "image/png"),
        "/large": send(body + bytes(PICTURE_BYTES), "image/png"),
    }
    downloader = make_downloader(trust)
    assert downloader.fetch_picture(host.url("/plain")) == ("image/png", body)
    for path in ("/html", "/svg", "/named", "/large"):
        with pytest.raises(ContentInvalid):
            downloader.fetch_picture(host.url(path))
