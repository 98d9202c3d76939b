"""Decodes a single block into rows as JSON-ready dicts."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.text.encoding import encode_bytes
from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.decode.block.block import decode_bundle
from tonlake.ingest.decode.block.header import read_header
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import DecodeError
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tonlake.lake.schema import Table

UNKNOWN_MC_SEQNO = 0

_WRITERS: dict[str, Callable[[Any], Any]] = {
    "hash": bytes.hex,
    "bytes": encode_bytes,
    "hashes": lambda hashes: [item.hex() for item in hashes],
    "json": lambda text: msgspec.Raw(text.encode()),
    "amount": str,
}
"""Converters of columns by type; values of other types are JSON already."""


def decode_block_rows(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the rows of a block for all tables, each with the name of its ``table``.

    Raises:
        BocError, DecodeError: ``data`` is not a block.
    """
    tree = parse_boc(data)
    if len(tree.roots) != 1:
        raise DecodeError(f"a bag of {len(tree.roots)} roots is not a block")
    header = read_header(tree)
    is_master = header.workchain == MASTERCHAIN
    block = BlockId(
        header.workchain,
        header.shard,
        header.seqno,
        tree.hash(tree.roots[0]),
        sha256(data).digest(),
    )
    mc_seqno = header.seqno if is_master else UNKNOWN_MC_SEQNO
    decoded = decode_bundle(McBundle(mc_seqno, (RawBlock(block, data),)))
    for name, rows in decoded.items():
        for row in rows.to_pylist():
            if not is_master:
                row["mc_seqno"] = None
            yield {"table": name, **_write_row(TABLES[name], row)}


def _write_row(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    written = dict(row)
    for column in table.columns:
        value = row[column.name]
        if value is not None and column.type in _WRITERS:
            written[column.name] = _WRITERS[column.type](value)
    return written
