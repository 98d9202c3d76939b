"""Reads the sizes of outbound queues after blocks, as rows of ``queue_sizes``.

TL-B: _ out_queue:OutMsgQueue proc_info:ProcessedInfo extra:(Maybe OutMsgQueueExtra) =
OutMsgQueueInfo; out_msg_queue_extra#0 dispatch_queue:DispatchQueue out_queue_size:(Maybe uint48);
OutMsgQueue = HashmapAugE 352 EnqueuedMsg uint64; DispatchQueue = HashmapAugE 256
AccountDispatchQueue uint64. If a state has no size (capability 512 is unset, or it is old), its
messages are counted, provided that the block's update shows the complete queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.block.header import read_parts
from tonlake.ingest.decode.block.state import read_state
from tonlake.ingest.decode.cell.bagindex import BagIndex
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.exotic import MERKLE_UPDATE, ORDINARY
from tonlake.ingest.decode.rows import Row, make_table
from tonlake.ingest.errors import BocError
from tonlake.lake.schema import QUEUE_SIZES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    import pyarrow as pa

    from tonlake.ingest.blocks import McBundle
    from tonlake.ingest.decode.cell.bagindex import IndexedCell

    Links: TypeAlias = Sequence[int] | None
    """Children of an ordinary cell; None for a pruned branch."""

_BLOCK_TAG, _STATE_TAG = bytes.fromhex("11ef55aa"), bytes.fromhex("9023afe2")
_AUG_BITS, _EXTRA_TAG_BITS, _SIZE_BITS = 64, 4, 48
_EXTRA_BITS = _EXTRA_TAG_BITS + 1 + _AUG_BITS + 1
_CHILDREN_OF_FORK = 2


def list_queue_sizes(bundles: Sequence[McBundle]) -> pa.Table:
    """Return the rows of blocks; hashes are not verified."""
    rows: list[Row] = [
        (
            *(block.id.workchain, block.id.shard, block.id.seqno, bundle.mc_seqno),
            read_queue_size(block.data),
        )
        for bundle in bundles
        for block in bundle.blocks
    ]
    return make_table(QUEUE_SIZES, rows)


def read_queue_size(data: bytes) -> int | None:
    """Return the size of the outbound queue after a block (bag of cells); None if unknown.

    Raises:
        BocError, DecodeError: ``data`` is no block.
    """
    try:
        return _read_indexed(BagIndex(data))
    except BocError:
        return _read_parsed(data)


def _read_indexed(bag: BagIndex) -> int | None:
    """Read the size through the index of the bag: a handful of cells out of thousands."""
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
    """Read the size from a bag without an index, parsing all of its cells."""
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
    """Return the size in OutMsgQueueInfo, else the number of messages if none is pruned."""
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
    """Return the size in the bits of OutMsgQueueInfo; None if it is not there.

    Unknown forms of ``extra`` (older states have ihr_pending there) are not errors.
    """
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
