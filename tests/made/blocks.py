"""Blocks to decode, from the reference data or the repository's demo node."""

from hashlib import sha256
from pathlib import Path

from tests.conftest import find_node, unpack
from tests.ingest.packs import scan_pack
from tonlake.ingest.blocks import BlockId, RawBlock
from tonlake.ingest.decode.block.header import read_header
from tonlake.ingest.decode.cell.boc import parse_boc

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
NETWORK_NODE = ROOT.parent / "shared" / "node" / "localnet-db.tar.zst"
"""A node of a genuine network of 22,089 transactions."""
DEMO = ROOT / "tests" / "data" / "node-demo" / "demo-node.tar.zst"
LARGE_BLOCK_BYTES = 200_000


def identify_block(data: bytes) -> RawBlock:
    """Return a block with its id, which is computed from its bytes."""
    tree = parse_boc(data)
    header = read_header(tree)
    root_hash, file_hash = tree.hash(tree.roots[0]), sha256(data).digest()
    place = (header.workchain, header.shard, header.seqno)
    return RawBlock(BlockId(*place, root_hash, file_hash), data)


def read_block_sets(scratch: Path) -> dict[str, list[RawBlock]]:
    """Return blocks by the name of their set: a large one, one of each kind, packages."""
    if not (DATA / "blocks").is_dir():
        return {"demo node": read_packs(unpack_demo(scratch))}
    paths = [*DATA.glob("blocks/*.boc"), *DATA.glob("bundles/*/mainnet_*.boc")]
    single = [identify_block(path.read_bytes()) for path in sorted(paths)]
    return {
        "large block": [raw for raw in single if len(raw.data) >= LARGE_BLOCK_BYTES],
        "block of each kind": [raw for raw in single if len(raw.data) < LARGE_BLOCK_BYTES],
        "packages of tiny blocks": read_packs(DATA / "packs"),
    }


def read_packs(folder: Path) -> list[RawBlock]:
    """Return all distinct blocks of the packages under a folder."""
    found = {
        block[:3]: block[3]
        for path in sorted(folder.rglob("*archive.*.pack"))
        for block in scan_pack(path)
    }
    return [identify_block(data) for data in found.values()]


def unpack_demo(scratch: Path) -> Path:
    """Unpack the demo node once and return its database folder."""
    return unpack_node(DEMO, scratch / "demo-node")


def unpack_node(packed: Path, folder: Path) -> Path:
    """Unpack a node once and return its database folder."""
    return find_node(folder) if folder.exists() else unpack(packed, folder)
