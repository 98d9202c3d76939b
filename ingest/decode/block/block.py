"""Decodes blocks to rows of all tables decoded from them, and the network's configuration.

TL-B: ConfigParams = config_addr:bits256 config:^(Hashmap 32 ^Cell); keys are signed. Its functions
raise DecodeError or BocError for trees of other types.
"""

from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256

import pyarrow as pa
from msgspec.structs import astuple

from tonlake.ingest.blocks import BlockId, KeyMark, McBundle, RawBlock
from tonlake.ingest.decode import native
from tonlake.ingest.decode.block.header import (
    BlockHeader,
    McExtra,
    check_tag,
    read_extra,
    read_header,
    read_mc_extra,
    read_own_info,
    read_parts,
    read_shard_tops,
    skip_currencies,
)
from tonlake.ingest.decode.block.message import sign_int32
from tonlake.ingest.decode.block.state import (
    STATE_TAG,
    StateCells,
    Touched,
    decode_update,
    read_config,
    read_state,
)
from tonlake.ingest.decode.block.transaction import BlockPlace, TransactionDecoder
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap, iter_hashmap_slice
from tonlake.ingest.decode.cell.tree import ORDINARY, CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.decode.rows import Row, RowSet
from tonlake.ingest.errors import BlockCorrupt, BocError, DecodeError
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.file.rows import without_collector
from tonlake.lake.schema import BLOCKS

_ACCOUNT_BLOCK_TAG = 5
_MICROSECONDS = 1_000_000


def decode_bundle(bundle: McBundle) -> dict[str, pa.Table]:
    """Decode one masterchain block and the shard blocks it commits; see ``decode_bundles``."""
    return decode_bundles((bundle,))


def decode_bundles(bundles: Sequence[McBundle]) -> dict[str, pa.Table]:
    """Decode masterchain blocks, each with the shard blocks it commits, to all their tables.

    Rows are in schema order, so the same blocks produce the same tables. A state cell occurs
    once, with the first masterchain block that contains it. The native decoder does this if it is
    installed (package ``tonlake.ingest.decode.native``), with the same result.
    """
    if native.is_used():
        return native.decode_bundles(bundles, decode_in_python)
    return decode_in_python(bundles)


@without_collector()
def decode_in_python(
    bundles: Sequence[McBundle], tops: Collection[BlockId] = ()
) -> dict[str, pa.Table]:
    """Implement ``decode_bundles`` in Python; ``tops`` are named by a block verified before."""
    rows = RowSet()
    cells = StateCells(rows["state_cells"])
    for bundle in bundles:
        for raw in bundle.blocks:
            tree = open_block(raw, is_named=raw.id in tops)
            try:
                _decode_block(tree, raw, bundle, rows, cells)
                if raw.id.workchain == MASTERCHAIN:
                    tops = {top.id for top in read_shard_tops(tree)}
            except (BocError, DecodeError) as error:
                raise DecodeError(f"block {raw.id}: {error}") from error
    return rows.to_arrow()


def open_block(raw: RawBlock, *, is_named: bool = False) -> CellTree:
    """Parse a block's bag of cells and verify both hashes of its id.

    ``is_named`` means that a verified masterchain block names this id. Then the file hash implies
    the root hash, and only cells whose hashes are in rows are hashed.
    """
    if sha256(raw.data).digest() != raw.id.file_hash:
        raise BlockCorrupt("the bytes do not have the file hash", block=raw.id)
    try:
        tree = parse_boc(raw.data, check_crc=False)
        if is_named and len(tree.roots) == 1:
            tree.trust()
            return tree
        if len(tree.roots) == 1 and tree.hash(tree.roots[0]) == raw.id.root_hash:
            return tree
    except BocError as error:
        raise BlockCorrupt(str(error), block=raw.id, offset=error.offset) from error
    raise BlockCorrupt("the root cell does not have the root hash", block=raw.id)


def _decode_block(
    tree: CellTree, raw: RawBlock, bundle: McBundle, rows: RowSet, cells: StateCells
) -> None:
    header = read_header(tree)
    mc_seqno = bundle.mc_seqno
    found = (header.workchain, header.shard, header.seqno)
    if found != (raw.id.workchain, raw.id.shard, raw.id.seqno):
        raise DecodeError(f"its header is of block {found}")
    # If the configuration is unknown, assume the newest version that the block's creator supports.
    version = bundle.versions.get(header.prev_key_block_seqno, header.gen_software_version)
    touched, count = _decode_transactions(tree, header, mc_seqno, version, rows)
    rows["blocks"].append(_make_block_row(header, raw, mc_seqno, count))
    decode_update(tree, header, mc_seqno, touched, rows, cells)
    rows["queue_sizes"].append((*found, mc_seqno, measure_queue(tree)))
    if header.workchain == MASTERCHAIN:
        rows["shard_blocks"].extend(_make_shard_rows(tree, header, raw))
        rows["config_params"].extend(config_rows(tree, mc_seqno, header.gen_utime))


def _decode_transactions(
    tree: CellTree, header: BlockHeader, mc_seqno: int, version: int | None, rows: RowSet
) -> tuple[list[Touched], int]:
    place = BlockPlace(header.workchain, header.shard, header.seqno, mc_seqno)
    decode = TransactionDecoder(tree, place, version).decode
    add = rows["transactions"].append
    add_messages = rows["messages"].extend
    touched = []
    count = 0
    blocks = list(_iter_account_blocks(tree))
    tree.hash_all([cell for _, found in blocks for _, cell in found])
    for account, found in blocks:
        last = None
        for lt, cell in found:
            last = decode(cell)
            if last.account != account or last.lt != lt:
                raise DecodeError(
                    f"transaction {last.hash.hex()} is stored at account {account.hex()}, lt {lt}"
                )
            add(last.row)
            add_messages(last.messages)
            count += 1
        if last is not None:
            touched.append(Touched(account, last.lt, last.hash, last.state_hash))
    return touched, count


def _iter_account_blocks(tree: CellTree) -> Iterator[tuple[bytes, list[tuple[int, int]]]]:
    """Yield each account of a block with its transactions (lt, cell).

    TL-B: ShardAccountBlocks = HashmapAugE 256 AccountBlock CurrencyCollection,
    transactions:(HashmapAug 64 ^Transaction CurrencyCollection).
    """
    blocks = tree.slice(read_extra(tree, read_parts(tree)).account_blocks)
    root = blocks.load_maybe_ref()
    if root is None:
        return
    for key, leaf in iter_hashmap(tree, root, 256):
        account = key.to_bytes(32, "big")
        skip_currencies(leaf)
        if leaf.load_uint(4 + 256) != _ACCOUNT_BLOCK_TAG << 256 | key:
            raise DecodeError(f"no AccountBlock of account {account.hex()} at its key")
        found = []
        for lt, entry in iter_hashmap_slice(leaf, 64):
            skip_currencies(entry)
            found.append((lt, entry.load_ref()))
        yield account, found


def _make_block_row(header: BlockHeader, raw: RawBlock, mc_seqno: int, tx_count: int) -> Row:
    columns = vars(header) | {
        "mc_seqno": mc_seqno,
        "root_hash": raw.id.root_hash,
        "file_hash": raw.id.file_hash,
        "time": header.gen_utime * _MICROSECONDS,
        "tx_count": tx_count,
        "boc_bytes": len(raw.data),
    }
    return tuple(map(columns.__getitem__, BLOCKS.names))


def _make_shard_rows(tree: CellTree, header: BlockHeader, raw: RawBlock) -> list[Row]:
    """Return the rows of ``shard_blocks``: the masterchain block itself and all shard tops."""
    seqno = header.seqno
    own = (seqno, *astuple(raw.id), header.start_lt, header.end_lt, header.gen_utime)
    tops = read_shard_tops(tree)
    return [
        own,
        *((seqno, *astuple(top.id), top.start_lt, top.end_lt, top.gen_utime) for top in tops),
    ]


_KEY_BITS = 32
VERSION_PARAM = 8
_VERSION_TAG = 0xC4
_WORKCHAINS = 12
"""ConfigParam 12: workchains:(HashmapE 32 WorkchainDescr)."""

_WORKCHAIN_TAGS = (0xA6, 0xA7)
_BITS_BEFORE_ZERO_STATE = 32 + 3 * 8 + 3 + 13
"""enabled_since, three split depths, basic, active, accept_msgs, flags."""

_WHOLE_SHARD = -(1 << 63)

ConfigRow = tuple[int, int, int, bytes, bytes]
"""A row of the table ``config_params``."""


def config_rows(tree: CellTree, mc_seqno: int, utime: int) -> list[ConfigRow]:
    """Return the parameters of a key block; empty for any other masterchain block."""
    root = read_mc_extra(tree).config
    return [] if root is None else read_params(tree, root, mc_seqno, utime)


def read_params(tree: CellTree, root: int, mc_seqno: int, utime: int) -> list[ConfigRow]:
    """Return the parameters in the dictionary (Hashmap 32 ^Cell) with root cell ``root``."""
    rows = []
    for key, value in iter_hashmap(tree, root, _KEY_BITS):
        cell = value.load_ref()
        rows.append(
            (mc_seqno, utime, sign_int32(key), tree.hash(cell), serialize_boc(tree, [cell]))
        )
    return rows


def find_version(tree: CellTree, root: int) -> int:
    """Return the global version of a configuration; 0 without ConfigParam 8, as in the node."""
    param = dict(iter_hashmap(tree, root, _KEY_BITS)).get(VERSION_PARAM)
    return 0 if param is None else read_version(tree, param.load_ref())


def read_version(tree: CellTree, cell: int) -> int:
    """Read ConfigParam 8: capabilities#c4 version:uint32 capabilities:uint64."""
    param = tree.slice(cell)
    check_tag(param, 8, _VERSION_TAG, "ConfigParam 8")
    return param.load_uint(32)


def read_mark(tree: CellTree, extra: McExtra | None = None) -> KeyMark:
    """Read which configuration applies to a masterchain block, and which it introduces."""
    root = (extra or read_mc_extra(tree)).config
    version = None if root is None else find_version(tree, root)
    info, _rest = read_own_info(tree, read_parts(tree).info)
    return KeyMark(info["prev_key_block_seqno"], version)


def find_zero_version(data: bytes) -> int | None:
    """Return the global version of a zero state; None if it has no configuration."""
    tree = parse_boc(data)
    root = read_config(tree, read_state(tree, tree.roots[0]))
    return None if root is None else find_version(tree, root)


def find_zero_states(tree: CellTree) -> list[BlockId]:
    """Return the ids of the workchains' zero states that the masterchain's zero state names.

    TL-B: workchain#a6, workchain_v2#a7.
    """
    root = read_config(tree, read_state(tree, tree.roots[0]))
    if root is None:
        raise DecodeError("the state has no configuration: it is not the masterchain's")
    params = {key: value.load_ref() for key, value in iter_hashmap(tree, root, _KEY_BITS)}
    found: list[BlockId] = []
    if _WORKCHAINS not in params:
        return found
    workchains = tree.slice(params[_WORKCHAINS]).load_maybe_ref()
    if workchains is None:
        return found
    for key, descr in iter_hashmap(tree, workchains, _KEY_BITS):
        tag = descr.load_uint(8)
        if tag not in _WORKCHAIN_TAGS:
            raise DecodeError(f"the workchain has the unknown form {tag:02x}")
        descr.skip(_BITS_BEFORE_ZERO_STATE)
        hashes = descr.load_bytes(32), descr.load_bytes(32)
        found.append(BlockId(sign_int32(key), _WHOLE_SHARD, 0, *hashes))
    return found


_AUG_BITS, _EXTRA_TAG_BITS, _SIZE_BITS = 64, 4, 48
_EXTRA_BITS = _EXTRA_TAG_BITS + 1 + _AUG_BITS + 1
_CHILDREN_OF_FORK = 2


def measure_queue(tree: CellTree) -> int | None:
    """Return the size of a shard's outbound message queue after a block; None if unknown.

    TL-B: _ out_queue:OutMsgQueue proc_info:ProcessedInfo extra:(Maybe OutMsgQueueExtra) =
    OutMsgQueueInfo; out_msg_queue_extra#0 dispatch_queue:DispatchQueue out_queue_size:(Maybe
    uint48); OutMsgQueue = HashmapAugE 352 EnqueuedMsg uint64; DispatchQueue = HashmapAugE 256
    AccountDispatchQueue uint64. If a state has no size (capability 512 is unset, or it is old), its
    messages are counted, provided that the block's update shows the complete queue.
    """
    _old, new = tree.links[read_parts(tree).state_update]
    state = tree.slice(new)
    check_tag(state, 32, STATE_TAG, "shard state")
    info = state.load_ref()
    if tree.kind(info) != ORDINARY:
        return None
    start = tree.slice(info)
    root = start.load_maybe_ref()
    start.skip(_AUG_BITS + 1)  # the augmentation, and whether proc_info is empty
    if root is None:
        return 0
    if start.load_bit() and start.bits_left >= _EXTRA_BITS and not start.load_uint(_EXTRA_TAG_BITS):
        start.skip(1 + _AUG_BITS)  # dispatch_queue
        if start.load_bit():
            return start.load_uint(_SIZE_BITS)
    return _count_leaves(tree, root)


def _count_leaves(tree: CellTree, root: int) -> int | None:
    """Count the leaves of a queue: a fork has two children, a leaf one, its message."""
    todo, count = [root], 0
    for _ in range(tree.count + 1):  # crafted blocks share cells many times
        if not todo:
            return count
        cell = todo.pop()
        if tree.kind(cell) != ORDINARY:  # pruned, since the block did not change it
            return None
        links = tree.links[cell]
        if len(links) == _CHILDREN_OF_FORK:
            todo += links
        else:
            count += 1
    raise BocError("the outbound queue repeats its cells")
