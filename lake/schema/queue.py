"""Table of outbound message queue sizes after each block."""

from tonlake.lake.schema.block import BLOCK_KEY
from tonlake.lake.schema.column import Column, Table

QUEUE_SIZES = Table(
    name="queue_sizes",
    doc=(
        "One row per block: size of its shard's outbound message queue after the block "
        "(OutMsgQueueInfo of the resulting state)."
    ),
    key=("workchain", "shard", "seqno"),
    sort=("mc_seqno", "workchain", "shard", "seqno"),
    columns=(
        *BLOCK_KEY,
        Column("mc_seqno", "int64", "Masterchain block that commits the block (or itself)"),
        Column(
            "out_queue_size",
            "int64",
            "Messages in the queue, without the dispatch queue; NULL: the state has no counter "
            "(before 2024) and the block does not contain the complete queue",
            nullable=True,
        ),
    ),
)
