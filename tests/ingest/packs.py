"""Reads the blocks of a database from its archive packages alone: each once, committed or not."""

import re
import struct
from collections.abc import Iterator
from pathlib import Path

_NAME = re.compile(rb"block_\((-?\d+),([0-9a-f]{16}),(\d+)\):([0-9A-F]{64}):([0-9A-F]{64})")
_ENTRY = struct.Struct("<HHI")


def scan_pack(path: Path) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield workchain, signed shard, seqno and bytes of every block in one package."""
    data = path.read_bytes()
    at = 4
    while at < len(data):
        _magic, name_len, size = _ENTRY.unpack_from(data, at)
        name = data[at + 8 : at + 8 + name_len]
        at += 8 + name_len
        if match := _NAME.fullmatch(name):
            shard = int.from_bytes(bytes.fromhex(match[2].decode()), "big", signed=True)
            yield int(match[1]), shard, int(match[3]), data[at : at + size]
        at += size


def read_blocks(db: Path) -> dict[tuple[int, int, int], bytes]:
    """Return all blocks of ``archive/packages`` by workchain, signed shard and seqno."""
    return {
        (workchain, shard, seqno): data
        for path in sorted((db / "archive" / "packages").rglob("archive.*.pack"))
        for workchain, shard, seqno, data in scan_pack(path)
    }
