"""Blocks and block ids of version 3."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tonlake.api.v3.layout.field import Base64, Decimal, Kind, Shard, inner


class BlockId(msgspec.Struct, gc=False):
    """A block id; ``shard`` is hex."""

    workchain: int
    shard: Shard | None
    seqno: int


class Block(msgspec.Struct, gc=False):
    """A block's header; lt and time are decimal text."""

    # Its sources: the row, the id of its masterchain block, and the ids of the previous blocks.

    workchain: int
    shard: Shard
    seqno: int
    root_hash: Base64
    file_hash: Base64
    global_id: int
    version: int
    after_merge: bool
    before_split: bool
    after_split: bool
    want_merge: bool
    want_split: bool
    key_block: bool
    vert_seqno_incr: bool
    flags: int
    gen_utime: Decimal
    start_lt: Decimal
    end_lt: Decimal
    validator_list_hash_short: int
    gen_catchain_seqno: int
    min_ref_mc_seqno: int
    prev_key_block_seqno: int
    vert_seqno: int
    master_ref_seqno: int
    rand_seed: Base64
    created_by: Base64
    tx_count: int
    masterchain_block_ref: Annotated[BlockId, inner(source=1)]
    prev_blocks: Annotated[list[BlockId], Kind.LIST, inner(source=2)]
