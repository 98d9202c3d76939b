"""Decodes chunks of masterchain blocks to pieces: rows of all tables.

If a chunk contains a bad block, it is decoded again in smaller parts: all other blocks are kept,
and the bad one becomes a Hole.

Sizes of outbound queues: TL-B _ out_queue:OutMsgQueue proc_info:ProcessedInfo
extra:(Maybe OutMsgQueueExtra) = OutMsgQueueInfo; out_msg_queue_extra#0 dispatch_queue:DispatchQueue
out_queue_size:(Maybe uint48); OutMsgQueue = HashmapAugE 352 EnqueuedMsg uint64; DispatchQueue =
HashmapAugE 256 AccountDispatchQueue uint64. If a state has no size (capability 512 is unset, or it
is old), its messages are counted, provided that the block's update shows the complete queue.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from tonlake.ingest.blocks import McBundle, RawBlock
from tonlake.ingest.decode.block.block import decode_bundles
from tonlake.ingest.decode.block.header import read_parts
from tonlake.ingest.decode.block.state import read_state
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.envelope import BagIndex, IndexedCell
from tonlake.ingest.decode.cell.tree import MERKLE_UPDATE, ORDINARY
from tonlake.ingest.decode.rows import Row, make_table
from tonlake.ingest.errors import BocError, IngestError
from tonlake.lake.schema import BLOCK_PROOFS, QUEUE_SIZES

Links: TypeAlias = Sequence[int] | None
"""Children of an ordinary cell; None for a pruned branch."""

_BLOCK_TAG, _STATE_TAG = bytes.fromhex("11ef55aa"), bytes.fromhex("9023afe2")
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
        return _read_indexed(BagIndex(data))
    except BocError:
        return _read_parsed(data)


def _read_indexed(bag: BagIndex) -> int | None:
    block = bag.read(bag.root)
    _check_tag(block, _BLOCK_TAG)
    update = bag.read(block.refs[2])
    if not update.is_exotic or update.data[0] != MERKLE_UPDATE:
        raise BocError("no Merkle update")
    state = bag.read(update.refs[1])
    _check_tag(state, _STATE_TAG)

    def read_links(cell: int) -> Links:
        found = bag.read(cell)
        return None if found.is_exotic else found.refs

    queue = bag.read(state.refs[0])
    return None if queue.is_exotic else _measure(queue.bits(), queue.refs, read_links)


def _check_tag(cell: IndexedCell, tag: bytes) -> None:
    if cell.is_exotic or not cell.data.startswith(tag):
        raise BocError(f"no cell with the tag {tag.hex()}")


def _read_parsed(data: bytes) -> int | None:
    tree = parse_boc(data, check_crc=False)
    _old, new = tree.refs(read_parts(tree).state_update)
    info = read_state(tree, new).out_msg_queue

    def read_links(cell: int) -> Links:
        return tree.refs(cell) if tree.kind(cell) == ORDINARY else None

    links = read_links(info)
    return None if links is None else _measure(tree.bits(info), links, read_links)


def _measure(
    bits: tuple[int, int], links: Sequence[int], read_links: Callable[[int], Links]
) -> int | None:
    size = _read_info(*bits)
    return _count_leaves(links[0], read_links) if size is None and links else size


def _count_leaves(root: int, read_links: Callable[[int], Links]) -> int | None:
    """Count the leaves of a queue: a fork has two children, a leaf one, its message."""
    todo, count = [root], 0
    while todo:
        links = read_links(todo.pop())
        if links is None:  # pruned, since the block did not change it
            return None
        if len(links) == _CHILDREN_OF_FORK:
            todo += links
        else:
            count += 1
    return count


def _read_info(value: int, bits: int) -> int | None:
    """Return the size in the bits of OutMsgQueueInfo; None if it is not there."""
    left = bits

    def load(count: int) -> int:
        nonlocal left
        left -= count
        if left < 0:
            raise BocError("OutMsgQueueInfo ends too early")
        return value >> left & ((1 << count) - 1)

    is_empty = not load(1)
    load(_AUG_BITS)
    load(1)  # proc_info
    if is_empty or not load(1):
        return 0 if is_empty else None
    if left < _EXTRA_BITS or load(_EXTRA_TAG_BITS):
        return None
    load(1)  # dispatch_queue
    load(_AUG_BITS)
    return load(_SIZE_BITS) if load(1) else None


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


def join_tables(pieces: Sequence[Piece]) -> dict[str, pa.Table]:
    """Concatenate the tables of consecutive pieces; state cells may be repeated."""
    if len(pieces) == 1:
        return dict(pieces[0].tables)
    names = pieces[0].tables
    return {name: pa.concat_tables([piece.tables[name] for piece in pieces]) for name in names}
