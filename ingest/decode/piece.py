"""Decodes chunks of masterchain blocks to pieces: rows of all tables.

If a chunk contains a bad block, it is decoded again in smaller parts: all other blocks are kept,
and the bad one becomes a Hole.

Sizes of outbound queues: TL-B _ out_queue:OutMsgQueue proc_info:ProcessedInfo
extra:(Maybe OutMsgQueueExtra) = OutMsgQueueInfo; out_msg_queue_extra#0 dispatch_queue:DispatchQueue
out_queue_size:(Maybe uint48); OutMsgQueue = HashmapAugE 352 EnqueuedMsg uint64; DispatchQueue =
HashmapAugE 256 AccountDispatchQueue uint64. If a state has no size (capability 512 is unset, or it
is old), its messages are counted, provided that the block's update shows the complete queue.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.blocks import McBundle, RawBlock
from tonlake.ingest.decode.block.block import decode_bundles
from tonlake.ingest.decode.block.header import check_tag, read_parts
from tonlake.ingest.decode.block.state import STATE_TAG
from tonlake.ingest.decode.cell.boc import open_indexed, parse_boc
from tonlake.ingest.decode.cell.tree import MERKLE_UPDATE, ORDINARY, CellTree
from tonlake.ingest.decode.rows import Row, make_table
from tonlake.ingest.errors import BocError, DecodeError, IngestError
from tonlake.lake.schema import BLOCK_PROOFS, QUEUE_SIZES

_AUG_BITS, _EXTRA_TAG_BITS, _SIZE_BITS = 64, 4, 48
_EXTRA_BITS = _EXTRA_TAG_BITS + 1 + _AUG_BITS + 1
_CHILDREN_OF_FORK = 2


def list_queue_sizes(bundles: Sequence[McBundle]) -> pa.Table:
    """Return the rows of blocks; hashes are not verified."""
    rows = [(*key, read_queue_size(block.data)) for key, block in _list_blocks(bundles)]
    return make_table(QUEUE_SIZES, rows)


def _list_blocks(bundles: Sequence[McBundle]) -> Iterator[tuple[Row, RawBlock]]:
    for bundle in bundles:
        for block in bundle.blocks:
            yield (block.id.workchain, block.id.shard, block.id.seqno, bundle.mc_seqno), block


def read_queue_size(data: bytes) -> int | None:
    """Return the size of the outbound queue after a block (bag of cells); None if unknown."""
    try:
        return _measure_queue(open_indexed(data))
    except (BocError, DecodeError):
        return _measure_queue(parse_boc(data, check_crc=False))


def _measure_queue(tree: CellTree) -> int | None:
    update = read_parts(tree).state_update
    if tree.kind(update) != MERKLE_UPDATE:
        raise BocError("no Merkle update")
    state = tree.slice(tree.links[update][1])
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
    while todo:
        cell = todo.pop()
        if tree.kind(cell) != ORDINARY:  # pruned, since the block did not change it
            return None
        links = tree.links[cell]
        if len(links) == _CHILDREN_OF_FORK:
            todo += links
        else:
            count += 1
    return count


def list_proofs(bundles: Sequence[McBundle]) -> pa.Table:
    """Return the proofs of blocks, unchanged, as rows of ``block_proofs``."""
    blocks = ((key, block) for key, block in _list_blocks(bundles) if block.proof is not None)
    return make_table(BLOCK_PROOFS, [(*key, one.proof, one.mc_extra) for key, one in blocks])


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


def take_blocks(tables: Mapping[str, pa.Table], first: int, last: int) -> dict[str, pa.Table]:
    """Return the rows of some masterchain blocks; the zero state comes with block 1."""
    lowest = 0 if first == 1 else first
    inside = (pc.field("mc_seqno") >= lowest) & (pc.field("mc_seqno") <= last)
    return {name: rows.filter(inside) for name, rows in tables.items()}


def join_tables(pieces: Sequence[Piece]) -> dict[str, pa.Table]:
    """Concatenate the tables of consecutive pieces; state cells may be repeated."""
    if len(pieces) == 1:
        return dict(pieces[0].tables)
    names = pieces[0].tables
    return {name: pa.concat_tables([piece.tables[name] for piece in pieces]) for name in names}
