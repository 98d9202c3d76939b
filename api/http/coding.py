"""Negotiates content codings (RFC 9110, 12.5.3) and compresses bodies.

A compressed body ends in a stored (uncompressed) block. So a cached response whose last bytes
differ between requests is compressed once, and the end is appended to it each time.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

GZIP, ZSTD, IDENTITY = "gzip", "zstd", "identity"
PREFERRED = (ZSTD, GZIP)
"""Order among codings of equal weight: for 3 MB zstd takes a tenth of the time of gzip."""

GZIP_LEVEL = 5

_WEIGHT = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")
_ALIASES = {"x-gzip": GZIP}
_GZIP_HEAD = bytes.fromhex("1f8b08000000000000ff")  # deflate, no flags, no time, unknown system
_GZIP_BLOCK_BYTES = (1 << 16) - 1
_ZSTD_HEAD = bytes.fromhex("28b52ffd0048")  # of an empty frame: no sizes, a window of 512 KiB
_ZSTD_BLOCK_BYTES = 1 << 17


class Choice(NamedTuple):
    """The coding to send, and whether the client refuses an uncompressed body."""

    coding: str | None
    refuses_identity: bool = False


@lru_cache(maxsize=1024)
def choose_coding(accepted: bytes) -> Choice:
    """Return the coding to send for an Accept-Encoding header.

    A coding that is not listed has the weight of ``*``; an invalid weight counts as 0. ``identity``
    has the lowest preference unless it is listed.
    """
    weights: dict[str, float] = {}
    for part in accepted.decode("latin-1").lower().split(","):
        name, *options = (piece.strip() for piece in part.split(";"))
        if name:
            name = _ALIASES.get(name, name)
            weights[name] = max(_read_weight(options), weights.get(name, 0.0))
    others = weights.get("*", 0.0)
    best = max(PREFERRED, key=lambda coding: weights.get(coding, others))
    refuses = weights.get(IDENTITY, weights.get("*", 1.0)) == 0
    weight = weights.get(best, others)
    is_accepted = weight > 0 and weight >= weights.get(IDENTITY, 0.0)
    return Choice(best if is_accepted else None, is_accepted and refuses)


def _read_weight(options: list[str]) -> float:
    text = next((each[2:].strip() for each in options if each.startswith("q=")), "1")
    return float(text) if _WEIGHT.fullmatch(text) else 0.0


class Packed(NamedTuple):
    """The compressed beginning of a body; ``checksum`` and ``size`` are those of that beginning."""

    coding: str
    head: bytes
    checksum: int
    size: int

    def seal(self, tail: bytes) -> bytes:
        """Return the complete compressed body; ``tail`` is stored uncompressed."""
        if self.coding == ZSTD:
            return self.head + _store_zstd(tail)
        checksum = zlib.crc32(tail, self.checksum)
        size = self.size + len(tail) & 0xFFFFFFFF
        end = checksum.to_bytes(4, "little") + size.to_bytes(4, "little")
        return self.head + _store_deflate(tail) + end


def pack(coding: str, body: bytes) -> Packed:
    """Compress the beginning of a body, or the entire body."""
    if coding == ZSTD:
        sink = io.BytesIO()
        with pa.CompressedOutputStream(sink, ZSTD) as stream:
            stream.write(body)
            stream.flush()
            # Without the final block, which closing the stream would add.
            head = sink.getvalue() or _ZSTD_HEAD
        return Packed(coding, head, 0, len(body))
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    head = _GZIP_HEAD + packer.compress(body) + packer.flush(zlib.Z_FULL_FLUSH)
    return Packed(coding, head, zlib.crc32(body), len(body))


def _store_deflate(tail: bytes) -> bytes:
    """Return data as stored deflate blocks (RFC 1951, 3.2.4), the last one marked as final."""
    blocks = []
    for at in range(0, len(tail) or 1, _GZIP_BLOCK_BYTES):
        block = tail[at : at + _GZIP_BLOCK_BYTES]
        final = at + _GZIP_BLOCK_BYTES >= len(tail)
        size = len(block)
        blocks.append(struct.pack("<BHH", final, size, size ^ 0xFFFF) + block)
    return b"".join(blocks)


def _store_zstd(tail: bytes) -> bytes:
    """Return data as raw zstd blocks (RFC 8878, 3.1.1.2), the last one marked as last."""
    blocks = []
    for at in range(0, len(tail) or 1, _ZSTD_BLOCK_BYTES):
        block = tail[at : at + _ZSTD_BLOCK_BYTES]
        final = at + _ZSTD_BLOCK_BYTES >= len(tail)
        blocks.append((len(block) << 3 | final).to_bytes(3, "little") + block)
    return b"".join(blocks)
