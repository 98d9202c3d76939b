"""Table of outbound queues: how many messages wait in a shard after each block."""

from lake.schema.block import BLOCK_KEY
from lake.schema.column import Column, Table

QUEUE_SIZES = Table(
    name="queue_sizes",
    doc=(
        "One row per block: how many messages its shard has to deliver after it (OutMsgQueueInfo "
        "of the state that the block makes)."
    ),
    key=("workchain", "shard", "seqno"),
    sort=("mc_seqno", "workchain", "shard", "seqno"),
    columns=(
        *BLOCK_KEY,
        Column("mc_seqno", "int64", "Masterchain block that commits the block (its own, there)"),
        Column(
            "out_queue_size",
            "int64",
            "Messages in the queue, those of the dispatch queue not among them; NULL: the state "
            "has no count, as before 2024, and the block does not show the whole queue",
            nullable=True,
        ),
    ),
)
