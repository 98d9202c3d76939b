"""A block's header as version 3 writes it, from a row of ``blocks``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api.encoding import encode_bytes, encode_shard
from api.v3.model import Block, BlockId

if TYPE_CHECKING:
    from collections.abc import Mapping

    Row = Mapping[str, Any]

_AS_IT_IS = (
    "workchain",
    "seqno",
    "global_id",
    "version",
    "after_merge",
    "before_split",
    "after_split",
    "want_merge",
    "want_split",
    "key_block",
    "vert_seqno_incr",
    "flags",
    "validator_list_hash_short",
    "gen_catchain_seqno",
    "min_ref_mc_seqno",
    "prev_key_block_seqno",
    "vert_seqno",
    "master_ref_seqno",
    "tx_count",
)
_HASHES = ("root_hash", "file_hash", "rand_seed", "created_by")
_NUMBERS = ("gen_utime", "start_lt", "end_lt")
MASTERCHAIN_SHARD = "8000000000000000"


def render_block(row: Row) -> Block:
    """Return the header of a row of ``blocks``."""
    fields: dict[str, Any] = {name: row[name] for name in _AS_IT_IS}
    fields |= {name: encode_bytes(row[name]) for name in _HASHES}
    fields |= {name: str(row[name]) for name in _NUMBERS}
    return Block(
        shard=encode_shard(row["shard"]),
        masterchain_block_ref=BlockId(-1, MASTERCHAIN_SHARD, row["mc_seqno"]),
        prev_blocks=_render_previous(row),
        **fields,
    )


def _render_previous(row: Row) -> list[BlockId]:
    """One block, or the two that merged; their shards follow from those of the row."""
    workchain = row["workchain"]
    left = BlockId(workchain, encode_shard(row["prev_shard"]), row["prev_seqno"])
    if row["prev2_seqno"] is None:
        return [left]
    return [left, BlockId(workchain, encode_shard(row["prev2_shard"]), row["prev2_seqno"])]
