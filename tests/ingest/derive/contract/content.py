"""Token content (TEP-64) for tests, written in every possible form."""

from collections.abc import Mapping
from hashlib import sha256

from tests.ingest.derive.body.encode import store_snake
from tests.ingest.hashmaps import build_hashmap, store_hashmap
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.contract.standard import CHUNKED, ON_CHAIN, SNAKE

_KEY_BITS, _CHUNK_BITS = 256, 32


def store_snake_value(builder: CellBuilder, data: bytes) -> None:
    """Store ``snake#00 data:(SnakeData ~n)``."""
    store_snake(data, builder.store_uint(SNAKE, 8))


def store_chunks(builder: CellBuilder, data: bytes, chunk_bytes: int) -> None:
    """Store ``chunks#01 data:ChunkedData`` with ``chunk_bytes`` bytes per chunk."""
    builder.store_uint(CHUNKED, 8)
    parts = [data[at : at + chunk_bytes] for at in range(0, len(data), chunk_bytes)]
    if not parts:
        builder.store_bit(0)
        return

    def write(part: bytes) -> int:
        cell = CellBuilder(builder.tree)
        store_snake(part, cell)
        return cell.end()

    cells = {number: write(part) for number, part in enumerate(parts)}
    leaves = {
        number: lambda leaf, cell=cell: leaf.store_ref(cell) for number, cell in cells.items()
    }
    builder.store_bit(1).store_ref(build_hashmap(builder.tree, leaves, _CHUNK_BITS))


def build_content(tree: CellTree, values: Mapping[str, int]) -> int:
    """Append on-chain content; values are cells of ContentData."""
    builder = CellBuilder(tree).store_uint(ON_CHAIN, 8)
    if not values:
        return builder.store_bit(0).end()
    leaves = {
        int.from_bytes(sha256(name.encode()).digest(), "big"): lambda leaf, cell=cell: (
            leaf.store_ref(cell)
        )
        for name, cell in values.items()
    }
    node = CellBuilder(tree)
    store_hashmap(node, leaves, _KEY_BITS)
    return builder.store_bit(1).store_ref(node.end()).end()
