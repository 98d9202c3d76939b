"""Reads the header of a block, finds the cells of its parts, and the shard tops that it commits.

TL-B (crypto/block/block.tlb): block#11ef55aa, block_info#9bc7a987, ext_blk_ref$_, shard_ident$00,
block_extra#4a33f6fd, capabilities#c4 (GlobalVersion), !merkle_update#04,
masterchain_block_extra#cca5, ShardHashes = HashmapE 32 ^(BinTree ShardDescr), bt_leaf$0, bt_fork$1,
shard_descr#b (fees inline), shard_descr_new#a (fees in a reference). Nothing here hashes a cell, so
the header of a large block costs the same as that of a small one. Functions raise DecodeError for
other types of cells, and BocError for cells that end too early or are pruned.
"""

from collections.abc import Iterator, Mapping
from struct import Struct
from types import SimpleNamespace
from typing import Any

import msgspec

from tonlake.ingest.blocks import MASTERCHAIN_SHARD, BlockId
from tonlake.ingest.decode.block.message import sign_int32
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import MERKLE_UPDATE, CellTree
from tonlake.ingest.errors import DecodeError

SHARD_PREFIX_MAX_BITS = 60
"""ShardIdent.shard_pfx_bits:(#<= 60)."""

_SHARD_MASK = (1 << 64) - 1
_BLOCK_TAG = 0x11EF55AA
_INFO_TAG = 0x9BC7A987
_EXTRA_TAG = 0x4A33F6FD
_GLOBAL_VERSION_TAG = 0xC4
_HAS_GEN_SOFTWARE = 1
_SHARD_IDENT, _PREFIX_LENGTH_BITS = Struct(">BiQ"), 6
_INFO_START, _INFO_END = Struct(">IBBII"), Struct(">IQQi3I")
"""BlockInfo after its tag, and after its shard."""
_INFO_START_NAMES = ("version", "bits", "flags", "seqno", "vert_seqno")
_INFO_END_NAMES = (
    *("gen_utime", "start_lt", "end_lt", "validator_list_hash_short", "gen_catchain_seqno"),
    *("min_ref_mc_seqno", "prev_key_block_seqno"),
)
_INFO_BITS = (
    *("vert_seqno_incr", "key_block", "want_merge", "want_split"),
    *("after_split", "before_split", "after_merge", "not_master"),
)
"""From the lowest bit up."""


class BlockParts(msgspec.Struct, frozen=True):
    """The cells (indices in the tree) of the parts of a block, and its network."""

    global_id: int
    info: int
    state_update: int
    extra: int


class BlockExtra(msgspec.Struct, frozen=True):
    """BlockExtra: ``account_blocks`` and ``custom`` (McBlockExtra, or None) are cells."""

    account_blocks: int
    rand_seed: bytes
    created_by: bytes
    custom: int | None


class BlockHeader(SimpleNamespace):
    """A block header: the columns of the table ``blocks`` stored in it, and master_ref_seqno."""

    @property
    def previous(self) -> tuple[BlockId, ...]:
        """Ids of the previous blocks; see ``list_previous``."""
        return list_previous(vars(self))


def list_previous(info: Mapping[str, Any]) -> tuple[BlockId, ...]:
    """Return the ids of the blocks before one: one, or the left and right parents after a merge."""
    names = ("shard", "seqno", "root_hash", "file_hash")
    return tuple(
        BlockId(info["workchain"], *(info[f"{before}_{name}"] for name in names))
        for before in ("prev", "prev2")
        if info[f"{before}_seqno"] is not None
    )


def read_header(tree: CellTree) -> BlockHeader:
    """Read the header of the block that is the first root of ``tree``."""
    parts = read_parts(tree)
    extra = read_extra(tree, parts)
    return BlockHeader(
        **read_info(tree, parts.info),
        global_id=parts.global_id,
        state_root_hash=_read_new_hash(tree, parts.state_update),
        rand_seed=extra.rand_seed,
        created_by=extra.created_by,
    )


def read_parts(tree: CellTree) -> BlockParts:
    """Find the parts of the block that is the first root of ``tree``."""
    block = tree.slice(tree.roots[0])
    check_tag(block, 32, _BLOCK_TAG, "block")
    global_id = block.load_int(32)
    info, _value_flow = block.load_ref(), block.load_ref()
    return BlockParts(global_id, info, block.load_ref(), block.load_ref())


def read_state_hash(tree: CellTree) -> bytes:
    """Return the root hash of the state after the block that is the first root of ``tree``."""
    return _read_new_hash(tree, read_parts(tree).state_update)


def read_extra(tree: CellTree, parts: BlockParts) -> BlockExtra:
    """Read BlockExtra; the message descriptions are skipped."""
    extra = tree.slice(parts.extra)
    check_tag(extra, 32, _EXTRA_TAG, "block extra")
    _in_msg_descr, _out_msg_descr = extra.load_ref(), extra.load_ref()
    account_blocks = extra.load_ref()
    rand_seed, created_by = extra.load_bytes(32), extra.load_bytes(32)
    return BlockExtra(account_blocks, rand_seed, created_by, extra.load_maybe_ref())


def check_tag(cell: CellSlice, bits: int, tag: int, what: str) -> None:
    """Read a constructor tag; raise DecodeError unless it is ``tag``, with ``what`` in the text."""
    found = cell.load_uint(bits)
    if found != tag:
        raise DecodeError(f"{what}: constructor tag {found:x} instead of {tag:x}")


def read_shard_ident(cell: CellSlice) -> tuple[int, int]:
    """Read a ShardIdent; return the workchain and the shard id, signed 64-bit."""
    head, workchain, prefix = _SHARD_IDENT.unpack(cell.load_bytes(_SHARD_IDENT.size))
    return workchain, make_shard(head, prefix)


def make_shard(head: int, prefix: int) -> int:
    """Return the shard id of a ShardIdent; ``head`` has its tag, 00, and the bits of its prefix."""
    tag = head >> _PREFIX_LENGTH_BITS
    if tag:
        raise DecodeError(f"shard ident: constructor tag {tag:x} instead of 0")
    if head > SHARD_PREFIX_MAX_BITS:
        raise DecodeError(f"shard ident: prefix of {head} bits; at most 60 are allowed")
    return sign_shard(prefix | 1 << (63 - head))


def sign_shard(shard: int) -> int:
    """Return the shard id, an unsigned 64-bit pattern, as the signed integer used in rows."""
    return shard - (1 << 64) if shard >> 63 else shard


def find_parent(shard: int) -> int:
    """Return the shard that was split into this one and its sibling; both are signed."""
    number = shard & _SHARD_MASK
    lowest = number & -number
    return sign_shard(number - lowest | lowest << 1)


def find_child(shard: int, *, right: bool = False) -> int:
    """Return the left or the right shard of those that were merged into this one."""
    number = shard & _SHARD_MASK
    half = (number & -number) >> 1
    return sign_shard(number + half if right else number - half)


def read_own_info(tree: CellTree, cell: int) -> tuple[dict[str, Any], CellSlice]:
    """Read the bits of BlockInfo; return its fields, and the slice at its references."""
    info = tree.slice(cell)
    check_tag(info, 32, _INFO_TAG, "block info")
    start = info.load_bytes(_INFO_START.size)
    row: dict[str, Any] = dict(zip(_INFO_START_NAMES, _INFO_START.unpack(start), strict=True))
    bits = row.pop("bits")
    row |= {name: bits >> at & 1 == 1 for at, name in enumerate(_INFO_BITS)}
    row["workchain"], row["shard"] = read_shard_ident(info)
    end = info.load_bytes(_INFO_END.size)
    row |= zip(_INFO_END_NAMES, _INFO_END.unpack(end), strict=True)
    row |= {"gen_software_version": None, "gen_software_capabilities": None}
    if row["flags"] & _HAS_GEN_SOFTWARE:
        check_tag(info, 8, _GLOBAL_VERSION_TAG, "gen_software")
        row["gen_software_version"] = info.load_uint(32)
        row["gen_software_capabilities"] = info.load_int(64)
    return row, info


def read_info(tree: CellTree, cell: int) -> dict[str, Any]:
    """Read BlockInfo and its references: the fields of ``BlockHeader`` stored in it."""
    row, info = read_own_info(tree, cell)
    not_master = row.pop("not_master")
    row["master_ref_seqno"] = _read_block_ref(tree.slice(info.load_ref()))[0] if not_master else 0
    return row | _read_previous(tree, info.load_ref(), row)


def _read_previous(tree: CellTree, cell: int, row: dict[str, Any]) -> dict[str, Any]:
    """Read BlkPrevInfo; the shards of the parents follow from the block's own shard."""
    names = ("seqno", "root_hash", "file_hash")
    previous, shard = tree.slice(cell), row["shard"]
    right: tuple[Any, ...] = (None, None, None)
    found = {"prev_shard": shard, "prev2_shard": None}
    if row["after_merge"]:
        left, right = (_read_block_ref(tree.slice(previous.load_ref())) for _ in range(2))
        found = {"prev_shard": find_child(shard), "prev2_shard": find_child(shard, right=True)}
    else:
        left = _read_block_ref(previous)
        if row["after_split"]:
            if shard == MASTERCHAIN_SHARD:
                raise DecodeError("block info: after_split in a shard that was never split")
            found["prev_shard"] = find_parent(shard)
    found |= {f"prev_{name}": value for name, value in zip(names, left, strict=True)}
    return found | {f"prev2_{name}": value for name, value in zip(names, right, strict=True)}


def _read_block_ref(cell: CellSlice) -> tuple[int, bytes, bytes]:
    cell.load_uint(64)
    return cell.load_uint(32), cell.load_bytes(32), cell.load_bytes(32)


def _read_new_hash(tree: CellTree, cell: int) -> bytes:
    """Return the hash of the state after the block; the old side may be a split_state."""
    if tree.kind(cell) != MERKLE_UPDATE:
        raise DecodeError("state update: the cell is not a Merkle update")
    return tree.payload(cell)[33:65]


_MC_EXTRA_TAG = 0xCCA5
_SHARD_DESCR_TAGS = (0xB, 0xA)
_SHARD_DESCR = Struct(">IIQQ32s32s17xI")
"""ShardDescr after its tag, without flags, next catchain, validator shard and min_ref_mc_seqno."""
_ROOT_SHARD = 1 << 63


class McExtra(msgspec.Struct, frozen=True):
    """McBlockExtra: its cell, and the roots of ShardHashes and of a key block's configuration."""

    cell: int
    key_block: bool
    shard_hashes: int | None
    config: int | None


class ShardTop(msgspec.Struct, frozen=True):
    """The newest block of a shard (signed), committed by masterchain block ``reg_mc_seqno``."""

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


def read_shard_tops(tree: CellTree, extra: McExtra | None = None) -> list[ShardTop]:
    """Read the shard tops of a masterchain block, by workchain key, then left to right."""
    root = (extra or read_mc_extra(tree)).shard_hashes
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
        return McExtra(cell, key_block, shard_hashes, None)
    extra.load_bytes(32)  # config_addr
    return McExtra(cell, key_block, shard_hashes, extra.load_ref())


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
    seqno, reg_mc_seqno, start_lt, end_lt, root_hash, file_hash, gen_utime = _SHARD_DESCR.unpack(
        leaf.load_bytes(_SHARD_DESCR.size)
    )
    names = (workchain, sign_shard(shard), seqno, reg_mc_seqno)
    return ShardTop(*names, root_hash, file_hash, start_lt, end_lt, gen_utime)
