"""Reads the size of a shard's outbound message queue after a block from the block's update.

TL-B: _ out_queue:OutMsgQueue proc_info:ProcessedInfo extra:(Maybe OutMsgQueueExtra) =
OutMsgQueueInfo; out_msg_queue_extra#0 dispatch_queue:DispatchQueue out_queue_size:(Maybe uint48);
OutMsgQueue = HashmapAugE 352 EnqueuedMsg uint64; DispatchQueue = HashmapAugE 256
AccountDispatchQueue uint64. If a state has no size (capability 512 is unset, or it is old), its
messages are counted, provided that the block's update shows the complete queue.
"""

from tonlake.ingest.decode.block.header import check_tag, read_parts
from tonlake.ingest.decode.block.state import STATE_TAG
from tonlake.ingest.decode.cell.tree import MERKLE_UPDATE, ORDINARY, CellTree
from tonlake.ingest.errors import BocError

_AUG_BITS, _EXTRA_TAG_BITS, _SIZE_BITS = 64, 4, 48
_EXTRA_BITS = _EXTRA_TAG_BITS + 1 + _AUG_BITS + 1
_CHILDREN_OF_FORK = 2


def measure_queue(tree: CellTree) -> int | None:
    """Return the size of the outbound queue after a block; None if unknown."""
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
