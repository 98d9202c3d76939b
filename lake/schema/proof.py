"""Table of block proofs, as stored by a node."""

from tonlake.lake.schema.block import BLOCK_KEY
from tonlake.lake.schema.column import Column, Table

BLOCK_PROOFS = Table(
    name="block_proofs",
    doc=(
        "One row per block with a proof in the source: Merkle proof of the header (BlockProof) "
        "and, in the masterchain, validator signatures."
    ),
    key=("workchain", "shard", "seqno"),
    sort=("mc_seqno", "workchain", "shard", "seqno"),
    columns=(
        *BLOCK_KEY,
        Column("mc_seqno", "int64", "Masterchain block that commits the block (or itself)"),
        Column(
            "proof",
            "bytes",
            "BlockProof as bag of cells: Merkle proof of the header; in the masterchain also "
            "signatures",
        ),
        Column(
            "mc_extra",
            "bytes",
            "Masterchain: McBlockExtra as bag of cells, with the shard tops",
            nullable=True,
        ),
    ),
)
