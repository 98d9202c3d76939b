"""Reads McBlockExtra: the shard tops that a masterchain block commits, and the configuration.

TL-B: masterchain_block_extra#cca5, ShardHashes = HashmapE 32 ^(BinTree ShardDescr),
bt_leaf$0, bt_fork$1, shard_descr#b (fees inline), shard_descr_new#a (fees in a reference).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.blocks import BlockId
from tonlake.ingest.decode.block.currency import sign_int32
from tonlake.ingest.decode.block.header import (
    SHARD_PREFIX_MAX_BITS,
    check_tag,
    read_extra,
    read_parts,
    sign_shard,
)
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tonlake.ingest.decode.cell.boc import CellTree
    from tonlake.ingest.decode.cell.slice import CellSlice

_MC_EXTRA_TAG = 0xCCA5
_SHARD_DESCR_TAGS = (0xB, 0xA)
_ROOT_SHARD = 1 << 63


class McExtra(msgspec.Struct, frozen=True):
    """McBlockExtra: root cells of ShardHashes and, in key blocks, of the configuration."""

    key_block: bool
    shard_hashes: int | None
    config: int | None


class ShardTop(msgspec.Struct, frozen=True):
    """The newest block of a shard in a masterchain block; ``shard`` is signed 64-bit.

    ``reg_mc_seqno`` is the masterchain block that committed it, this one or an earlier one.
    """

    workchain: int
    shard: int
    seqno: int
    reg_mc_seqno: int
    root_hash: bytes
    file_hash: bytes
    start_lt: int
    end_lt: int
    gen_utime: int

    @property
    def id(self) -> BlockId:
        """The full id of the block."""
        return BlockId(self.workchain, self.shard, self.seqno, self.root_hash, self.file_hash)


def read_shard_tops(tree: CellTree) -> list[ShardTop]:
    """Read the shard tops of a masterchain block, by workchain key, then left to right."""
    root = read_mc_extra(tree).shard_hashes
    if root is None:
        return []
    tops: list[ShardTop] = []
    for key, value in iter_hashmap(tree, root, 32):
        for shard, leaf in _iter_shards(tree, value.load_ref()):
            tops.append(_read_shard_descr(sign_int32(key), shard, leaf))
    return tops


def read_mc_extra(tree: CellTree) -> McExtra:
    """Read McBlockExtra of the masterchain block that is the first root of ``tree``."""
    cell = read_extra(tree, read_parts(tree)).custom
    if cell is None:
        raise DecodeError("block extra: no McBlockExtra, so this is not a masterchain block")
    extra = tree.slice(cell)
    check_tag(extra, 16, _MC_EXTRA_TAG, "masterchain block extra")
    key_block = extra.load_bit()
    shard_hashes = extra.load_maybe_ref()
    extra.load_maybe_ref()  # the root of shard_fees; its sums follow: fees and created
    for _ in range(2):
        skip_currencies(extra)
    extra.load_ref()  # signatures of the previous block, recover_create_msg and mint_msg
    if not key_block:
        return McExtra(key_block, shard_hashes, None)
    extra.load_bytes(32)  # config_addr
    return McExtra(key_block, shard_hashes, extra.load_ref())


def skip_currencies(cell: CellSlice) -> None:
    """Skip a CurrencyCollection."""
    cell.load_coins()
    cell.load_maybe_ref()


_SHARED_VISITS = 10_000
"""Visits allowed beyond the number of cells: shards of a zero state share cells, but no block has
more shards than this."""


def _iter_shards(tree: CellTree, root: int) -> Iterator[tuple[int, CellSlice]]:
    """Yield shard id (unsigned) and leaf, left to right; the path is the shard's prefix."""
    todo = [(root, _ROOT_SHARD)]
    visits = 0
    while todo:
        cell, shard = todo.pop()
        visits += 1
        if visits > tree.count + _SHARED_VISITS:
            raise DecodeError("shard hashes: cells are shared too often")
        node = tree.slice(cell)
        if not node.load_bit():
            yield shard, node
            continue
        half = (shard & -shard) >> 1
        if half < 1 << (63 - SHARD_PREFIX_MAX_BITS):
            raise DecodeError(f"shard hashes: a tree deeper than {SHARD_PREFIX_MAX_BITS}")
        left, right = node.load_ref(), node.load_ref()
        todo += [(right, shard + half), (left, shard - half)]


def _read_shard_descr(workchain: int, shard: int, leaf: CellSlice) -> ShardTop:
    tag = leaf.load_uint(4)
    if tag not in _SHARD_DESCR_TAGS:
        raise DecodeError(f"shard descr: constructor tag {tag:x} instead of a or b")
    seqno, reg_mc_seqno = leaf.load_uint(32), leaf.load_uint(32)
    start_lt, end_lt = leaf.load_uint(64), leaf.load_uint(64)
    root_hash, file_hash = leaf.load_bytes(32), leaf.load_bytes(32)
    leaf.skip(
        8 + 32 + 64 + 32
    )  # flags, next_catchain_seqno, next_validator_shard, min_ref_mc_seqno
    return ShardTop(
        workchain=workchain,
        shard=sign_shard(shard),
        seqno=seqno,
        reg_mc_seqno=reg_mc_seqno,
        root_hash=root_hash,
        file_hash=file_hash,
        start_lt=start_lt,
        end_lt=end_lt,
        gen_utime=leaf.load_uint(32),
    )
