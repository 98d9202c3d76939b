"""Reads block handles: what a node records about each block (``db.block.info``).

The value is the block id, 32 flag bits, and those fields whose flag is set.
"""

from __future__ import annotations

from enum import IntFlag

import msgspec

from tonlake.ingest.blocks import BlockId
from tonlake.ingest.source.node.tl import (
    BLOCK_HANDLE_KEY,
    BLOCK_INFO,
    TlReader,
    pack_block_id,
    pack_constructor,
)
from tonlake.lake.account import MASTERCHAIN

HANDLE_PREFIX = pack_constructor(BLOCK_HANDLE_KEY)
MASTERCHAIN_SHARD = -(1 << 63)


class HandleFlag(IntFlag):
    """The bits of ``db.block.info.flags`` (``validator/block-handle.hpp``) used here."""

    PREV_LEFT = 1 << 1
    PREV_RIGHT = 1 << 2
    NEXT_LEFT = 1 << 3
    NEXT_RIGHT = 1 << 4
    LT_KNOWN = 1 << 13
    TIME_KNOWN = 1 << 14
    STATE_HASH_KNOWN = 1 << 17
    ARCHIVED = 1 << 21
    MASTERCHAIN_REF_KNOWN = 1 << 23


class BlockHandle(msgspec.Struct, frozen=True):
    """A block's position in the chain and its processing status in the node.

    ``lt`` is the block's end_lt, ``unixtime`` its gen_utime, ``state_root_hash`` the root hash of
    the state after it; each is None while the node does not know it.
    """

    id: BlockId
    flags: HandleFlag
    prev: tuple[BlockId, ...]
    next: tuple[BlockId, ...]
    lt: int | None
    unixtime: int | None
    state_root_hash: bytes | None
    stored_masterchain_ref: int | None

    @property
    def masterchain_ref(self) -> int | None:
        """Seqno of the masterchain block that commits this block; its own if it is one."""
        if self.id.workchain == MASTERCHAIN:
            return self.id.seqno
        return self.stored_masterchain_ref


def name_mc_block(mc_seqno: int) -> BlockId:
    """Return the id of a masterchain block with unknown hashes."""
    return BlockId(MASTERCHAIN, MASTERCHAIN_SHARD, mc_seqno, b"", b"")


def pack_handle_key(block_id: BlockId) -> bytes:
    """Return the key of a block's handle: boxed ``db.blockdb.key.value``."""
    return HANDLE_PREFIX + pack_block_id(block_id)


def unpack_handle_key(key: bytes, what: str) -> BlockId:
    """Return the block id in the key of a handle; ``what`` names the store in errors."""
    reader = TlReader(key, f"{what}: key of a handle")
    reader.read_constructor(BLOCK_HANDLE_KEY)
    block_id = reader.read_block_id()
    reader.expect_end()
    return block_id


def pack_handle_prefix(workchain: int, shard: int, seqno: int) -> bytes:
    """Return the common prefix of the handle keys of this workchain, shard and seqno."""
    return pack_handle_key(BlockId(workchain, shard, seqno, b"", b""))[:20]


def read_handle(data: bytes, what: str) -> BlockHandle:
    """Read a boxed ``db.block.info``; ``what`` names the value in errors."""
    reader = TlReader(data, what)
    reader.read_constructor(BLOCK_INFO)
    block_id = reader.read_block_id()
    flags = HandleFlag(reader.read_uint())

    def read_ids(left: HandleFlag, right: HandleFlag) -> tuple[BlockId, ...]:
        return tuple(reader.read_block_id() for bit in (left, right) if bit in flags)

    handle = BlockHandle(
        id=block_id,
        flags=flags,
        prev=read_ids(HandleFlag.PREV_LEFT, HandleFlag.PREV_RIGHT),
        next=read_ids(HandleFlag.NEXT_LEFT, HandleFlag.NEXT_RIGHT),
        lt=reader.read_long() if HandleFlag.LT_KNOWN in flags else None,
        unixtime=reader.read_uint() if HandleFlag.TIME_KNOWN in flags else None,
        state_root_hash=reader.read_bytes(32) if HandleFlag.STATE_HASH_KNOWN in flags else None,
        stored_masterchain_ref=(
            reader.read_uint() if HandleFlag.MASTERCHAIN_REF_KNOWN in flags else None
        ),
    )
    reader.expect_end()
    return handle
