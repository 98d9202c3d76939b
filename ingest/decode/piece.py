"""Decodes chunks of masterchain blocks to pieces: rows of all tables.

If a chunk contains a bad block, it is decoded again in smaller parts: all other blocks are kept,
and the bad one becomes a Hole.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple

from tonlake.ingest.blocks import McBundle
from tonlake.ingest.decode.block.block import decode_bundles
from tonlake.ingest.decode.rows import make_table
from tonlake.ingest.errors import IngestError
from tonlake.lake.file.rows import keep_rows
from tonlake.lake.schema import BLOCK_PROOFS


def list_proofs(bundles: Sequence[McBundle]) -> pa.Table:
    """Return the proofs of blocks, unchanged, as rows of ``block_proofs``."""
    rows = [
        (*astuple(raw.id)[:3], bundle.mc_seqno, raw.proof, raw.mc_extra)
        for bundle in bundles
        for raw in bundle.blocks
        if raw.proof is not None
    ]
    return make_table(BLOCK_PROOFS, rows)


class Hole(msgspec.Struct, frozen=True):
    """A masterchain block that could not be read or decoded, and why."""

    mc_seqno: int
    kind: str
    reason: str


class Piece(msgspec.Struct, frozen=True):
    """Rows of all base and side tables for the masterchain blocks ``first`` to ``last``."""

    first: int
    last: int
    tables: dict[str, Any]


def decode_chunk(bundles: Sequence[McBundle]) -> list[Piece | Hole]:
    """Decode consecutive masterchain blocks; a bad one is a Hole between two pieces."""
    try:
        tables = decode_bundles(bundles) | {BLOCK_PROOFS.name: list_proofs(bundles)}
        return [Piece(bundles[0].mc_seqno, bundles[-1].mc_seqno, tables)]
    except IngestError as error:
        if len(bundles) == 1:
            return [Hole(bundles[0].mc_seqno, type(error).__name__, str(error))]
    middle = len(bundles) // 2
    return decode_chunk(bundles[:middle]) + decode_chunk(bundles[middle:])


def take_blocks(tables: Mapping[str, pa.Table], first: int, last: int) -> dict[str, pa.Table]:
    """Return the rows of some masterchain blocks; the zero state comes with block 1."""
    lowest = 0 if first == 1 else first
    found = {}
    for name, rows in tables.items():
        block = rows["mc_seqno"]
        inside = pc.and_(pc.greater_equal(block, lowest), pc.less_equal(block, last))
        found[name] = keep_rows(rows, inside)
    return found


def join_tables(pieces: Sequence[Piece]) -> dict[str, pa.Table]:
    """Concatenate the tables of consecutive pieces; state cells may be repeated."""
    if len(pieces) == 1:
        return dict(pieces[0].tables)
    names = pieces[0].tables
    return {name: pa.concat_tables([piece.tables[name] for piece in pieces]) for name in names}
