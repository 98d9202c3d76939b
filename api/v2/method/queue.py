"""How many messages wait in each shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.chain.place import find_master
from tonlake.api.errors import LiteServerError
from tonlake.api.v2.value import render_block_of

if TYPE_CHECKING:
    from tonlake.api.request.call import Call
    from tonlake.api.v2.arguments import NoParams

EXT_MSG_QUEUE_SIZE_LIMIT = 8000
"""Messages from outside that wait in a shard at most (``ValidatorManagerImpl``)."""


def answer_queue_sizes(call: Call, params: NoParams) -> dict[str, Any]:
    """getOutMsgQueueSizes: current outbound queue size of the masterchain and every shard.

    Raises:
        LiteServerError: a size is not known, which is not the same as an empty queue.
    """
    del params
    master = find_master(call)
    rows = call.reader.rows("v2/queue_sizes", mc_seqno=master["seqno"])
    for row in rows:
        if row["out_queue_size"] is None:
            raise LiteServerError(
                f"LITE_SERVER_ERROR: the size of the queue after block ({row['workchain']},"
                f"{row['shard'] & (1 << 64) - 1:016x},{row['seqno']}) is not known: the lake was "
                "made before sizes were kept, or the state has none"
            )
    return {
        "@type": "blocks.outMsgQueueSizes",
        "shards": [
            {
                "@type": "blocks.outMsgQueueSize",
                "id": render_block_of(row),
                "size": row["out_queue_size"],
            }
            for row in rows
        ],
        "ext_msg_queue_size_limit": EXT_MSG_QUEUE_SIZE_LIMIT,
    }
