"""Chunks of masterchain blocks to pieces: rows of all tables.

A chunk that holds one bad block still gives all its other blocks: it is decoded again block by
block, and the bad one becomes a Hole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from tonlake.ingest.decode.block.block import decode_bundles
from tonlake.ingest.decode.queue import list_queue_sizes
from tonlake.ingest.decode.rows import Row, make_table
from tonlake.ingest.errors import IngestError
from tonlake.lake.schema import BLOCK_PROOFS, QUEUE_SIZES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.blocks import McBundle


def list_proofs(bundles: Sequence[McBundle]) -> pa.Table:
    """Return the proofs that came with blocks; they are kept as they are."""
    rows: list[Row] = [
        (
            *(block.id.workchain, block.id.shard, block.id.seqno, bundle.mc_seqno),
            block.proof,
            block.mc_extra,
        )
        for bundle in bundles
        for block in bundle.blocks
        if block.proof is not None
    ]
    return make_table(BLOCK_PROOFS, rows)


class Hole(msgspec.Struct, frozen=True):
    """A masterchain block that could not be had or decoded, and why."""

    mc_seqno: int
    kind: str
    reason: str


class Piece(msgspec.Struct, frozen=True):
    """Rows of all base and side tables for consecutive masterchain blocks ``first`` to ``last``."""

    first: int
    last: int
    tables: dict[str, Any]


def decode_chunk(bundles: Sequence[McBundle]) -> list[Piece | Hole]:
    """Decode consecutive masterchain blocks; each bad one is a Hole between two pieces."""
    try:
        tables = decode_bundles(bundles) | {
            BLOCK_PROOFS.name: list_proofs(bundles),
            QUEUE_SIZES.name: list_queue_sizes(bundles),
        }
        return [Piece(bundles[0].mc_seqno, bundles[-1].mc_seqno, tables)]
    except IngestError as error:
        if len(bundles) == 1:
            return [Hole(bundles[0].mc_seqno, type(error).__name__, str(error))]
    middle = len(bundles) // 2
    return decode_chunk(bundles[:middle]) + decode_chunk(bundles[middle:])


def join_tables(pieces: Sequence[Piece]) -> dict[str, pa.Table]:
    """Join the tables of consecutive pieces; a state cell may come more than once."""
    names = pieces[0].tables
    return {name: pa.concat_tables([piece.tables[name] for piece in pieces]) for name in names}
