"""A block's header as version 3 writes it, from a row of ``blocks``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.v3.layout.block import Block
from tonlake.api.v3.layout.build import make_builder
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    Row = Mapping[str, Any]

_MASTERCHAIN_SHARD = {"workchain": MASTERCHAIN, "shard": -(1 << 63)}


def render_block(row: Row) -> Block:
    """Return the header of a row of ``blocks``."""
    block: Block = make_builder(Block)(list_sources(row))
    return block


def list_sources(row: Row) -> tuple[Any, ...]:
    """Return what a block is made of: one block before it, or the two that merged."""
    workchain, names = row["workchain"], ("prev", "prev2")
    previous = [
        {"workchain": workchain, "shard": row[f"{name}_shard"], "seqno": row[f"{name}_seqno"]}
        for name in (names if row["prev2_seqno"] is not None else names[:1])
    ]
    return row, _MASTERCHAIN_SHARD | {"seqno": row["mc_seqno"]}, previous
