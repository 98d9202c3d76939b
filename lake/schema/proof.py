"""Table of block proofs, as a node keeps them beside its blocks."""

from lake.schema.block import BLOCK_KEY
from lake.schema.column import Column, Table

BLOCK_PROOFS = Table(
    name="block_proofs",
    doc=(
        "One row per block whose proof the source has: what shows the block to one who has only "
        "the hash of its root (BlockProof), and who signed it."
    ),
    key=("workchain", "shard", "seqno"),
    sort=("mc_seqno", "workchain", "shard", "seqno"),
    columns=(
        *BLOCK_KEY,
        Column("mc_seqno", "int64", "Masterchain block that commits the block (its own, there)"),
        Column(
            "proof",
            "bytes",
            "BlockProof as bag of cells: a Merkle proof of the header; in the masterchain also the "
            "signatures",
        ),
        Column(
            "mc_extra",
            "bytes",
            "Masterchain: McBlockExtra as bag of cells, which names the shard tops",
            nullable=True,
        ),
    ),
)
