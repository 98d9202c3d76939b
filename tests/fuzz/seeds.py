"""Chooses the fuzzer's corpus: small blocks of the demo node with different contents.

``python -m tests.fuzz.seeds`` rewrites ``tests/fuzz/corpus``.
"""

import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from tests.conftest import DEMO, unpack
from tests.ingest.networks import Network
from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.decode.block.block import decode_bundle
from tonlake.ingest.decode.cell.boc import parse_boc

CORPUS = Path(__file__).parent / "corpus"
MAX_BYTES = 12_000
# Columns whose distinct values, and columns whose presence, make a block worth including.
_VALUES = {
    "blocks": ("workchain", "after_merge", "after_split", "before_split", "key_block"),
    "transactions": ("descr", "end_status", "compute_skip_reason", "bounce", "aborted"),
    "messages": ("kind", "source_kind", "destination_kind", "direction"),
    "account_states": ("account_status", "special_tick"),
}
_PRESENCES = {
    "transactions": ("action_success", "credit_extra_currencies", "storage_fees_due"),
    "messages": ("init_state", "value_extra_currencies", "extra_flags", "opcode"),
    "account_states": ("library_hash", "frozen_hash", "extra_currencies_hash"),
}


def _list_features(tables: dict[str, pa.Table]) -> Iterator[tuple[str, str, object]]:
    for table, names in _VALUES.items():
        for name in names:
            for value in set(tables[table][name].to_pylist()):
                yield table, name, value
    for table, names in _PRESENCES.items():
        for name in names:
            if tables[table][name].null_count < tables[table].num_rows:
                yield table, name, "there"
    for table, rows in tables.items():
        yield table, "rows", min(rows.num_rows, 2)


def choose(network: Network) -> list[RawBlock]:
    """Return the smallest blocks that together show every feature."""
    blocks = [raw for bundle in network.bundles for raw in bundle.blocks]
    seen: set[tuple[str, str, object]] = set()
    chosen = []
    for raw in sorted(blocks, key=lambda raw: (len(raw.data), raw.id)):
        if len(raw.data) > MAX_BYTES:
            break
        features = set(_list_features(decode_bundle(McBundle(1, (raw,)))))
        if features - seen:
            seen |= features
            chosen.append(raw)
    return chosen


def read_corpus() -> list[RawBlock]:
    """Return the blocks of the corpus; a file is named workchain_shard_seqno."""
    blocks = []
    for file in sorted(CORPUS.glob("*.boc")):
        workchain, shard, seqno = file.stem.split("_")
        data = file.read_bytes()
        root_hash = parse_boc(data, check_crc=False).hash(0)
        file_hash = sha256(data).digest()
        name = BlockId(int(workchain), int(shard), int(seqno), root_hash, file_hash)
        blocks.append(RawBlock(name, data))
    return blocks


def main() -> None:
    """Write the corpus."""
    CORPUS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        network = Network(unpack(DEMO / "demo-node.tar.zst", Path(folder)), DEMO)
        for raw in choose(network):
            name = f"{raw.id.workchain}_{raw.id.shard}_{raw.id.seqno}.boc"
            (CORPUS / name).write_bytes(raw.data)


if __name__ == "__main__":
    main()
