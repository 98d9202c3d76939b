"""Proofs of blocks to rows of ``block_proofs``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.rows import Row, make_table
from tonlake.lake.schema import BLOCK_PROOFS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

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
