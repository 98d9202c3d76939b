"""Blocks around single transactions, and the comparison of both decoders."""

from hashlib import sha256

import pyarrow as pa

from tests.ingest.hashmaps import build_hashmap, store_hashmap
from tests.ingest.updates import end_update
from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.decode import native
from tonlake.ingest.decode.block.block import decode_in_python
from tonlake.ingest.decode.block.state import NONEXIST_HASH
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, append_cell
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import BlockCorrupt, DecodeError

SHARD = -(1 << 63)
SEQNO = 7


def compare(bundle: McBundle, *, is_named: bool = False) -> str:
    """Decode with both and compare: "accepted" by both, "rejected" by both, or "declined"."""
    blocks = [(raw, bundle.mc_seqno) for raw in bundle.blocks]
    count, tables = native.decode_natively(blocks, bundle.versions, all_named=is_named)
    mine = tables if count == len(blocks) else None
    try:
        expected = decode_in_python((bundle,), {raw.id for raw in bundle.blocks if is_named})
    except (BlockCorrupt, DecodeError):
        shown = [raw.data.hex() for raw in bundle.blocks]
        assert mine is None, f"the native decoder accepts what the reference refuses: {shown}"
        return "rejected"
    if mine is None:
        return "declined"
    check_equal(mine, expected)
    return "accepted"


def check_equal(mine: dict[str, pa.Table], expected: dict[str, pa.Table]) -> None:
    """Compare all tables, schemas with their metadata included."""
    assert mine.keys() == expected.keys()
    for name, table in expected.items():
        mine[name].validate(full=True)
        assert mine[name].equals(table, check_metadata=True), name


def wrap(bag: bytes, raw: RawBlock, root_hash: bytes) -> McBundle:
    """Pass a bag to the decoders as the block ``raw``, under the hashes that it has."""
    name = BlockId(raw.id.workchain, raw.id.shard, raw.id.seqno, root_hash, sha256(bag).digest())
    return McBundle(1, (RawBlock(name, bag),))


def _end_with(tree: CellTree, transaction: int, state_hash: bytes) -> int:
    """Return the transaction with another state of its account after it."""
    kids = list(tree.links[transaction])
    place = len(kids) - 2
    before = tree.payload(kids[place])[1:33]
    update = CellBuilder(tree).store_uint(0x72, 8).store_bytes(before).store_bytes(state_hash)
    kids[place] = update.end()
    return append_cell(tree, *tree.bits(transaction), tuple(kids))


def wrap_transaction(
    tree: CellTree, transaction: int, version: int | None = None, state: int | None = None
) -> McBundle:
    """Return a block of workchain 0 with this one transaction, which leaves a state or none."""
    transaction = _end_with(tree, transaction, NONEXIST_HASH if state is None else tree.hash(state))
    head = tree.slice(transaction)
    head.skip(4)
    account, lt = head.load_uint(256), head.load_uint(64)

    def store_block(leaf: CellBuilder) -> None:
        leaf.store_uint(0, 5).store_uint(5, 4).store_uint(account, 256)
        store_hashmap(leaf, {lt: lambda to: to.store_uint(0, 5).store_ref(transaction)}, 64)

    root = build_hashmap(tree, {account: store_block}, 256)
    accounts = CellBuilder(tree).store_maybe_ref(root).store_uint(0, 5).end()
    empty = CellBuilder(tree).end()
    extra = CellBuilder(tree).store_uint(0x4A33F6FD, 32).store_ref(empty).store_ref(empty)
    extra.store_ref(accounts).store_uint(1, 256).store_uint(2, 256).store_bit(0)
    whole = _end_state(tree, account, state)
    block = CellBuilder(tree).store_uint(0x11EF55AA, 32).store_int(-239, 32)
    block.store_ref(_end_info(tree, version)).store_ref(empty)
    block.store_ref(end_update(tree, whole, whole)).store_ref(extra.end())
    bag = serialize_boc(tree, [block.end()])
    root_hash = parse_boc(bag).hash(0)
    name = BlockId(0, SHARD, SEQNO, root_hash, sha256(bag).digest())
    return McBundle(5, (RawBlock(name, bag),))


def _end_info(tree: CellTree, version: int | None) -> int:
    """BlockInfo of a block with a reference to a masterchain block and a predecessor."""
    info = CellBuilder(tree).store_uint(0x9BC7A987, 32).store_uint(0, 32)
    info.store_bit(1).store_uint(0, 7).store_uint(version is not None, 8)
    info.store_uint(SEQNO, 32).store_uint(0, 32).store_uint(0, 8).store_int(0, 32)
    info.store_uint(0, 64).store_uint(1_700_000_000, 32).store_uint(3, 64).store_uint(9, 64)
    info.store_uint(0, 4 * 32)
    if version is not None:
        info.store_uint(0xC4, 8).store_uint(version, 32).store_uint(1, 64)
    reference = CellBuilder(tree).store_uint(0, 64 + 32 + 512).end()
    return info.store_ref(reference).store_ref(reference).end()


def _end_state(tree: CellTree, account: int, cell: int | None) -> int:
    """ShardStateUnsplit with at most one account."""
    empty, queue = CellBuilder(tree).end(), CellBuilder(tree).store_uint(0, 1 + 64 + 1 + 1).end()
    entries = {account: lambda to: to.store_uint(0, 5 + 5).store_ref(cell).store_uint(0, 256 + 64)}
    root = None if cell is None else build_hashmap(tree, entries, 256)
    accounts = CellBuilder(tree).store_maybe_ref(root).store_uint(0, 5 + 5).end()
    state = CellBuilder(tree).store_uint(0x9023AFE2, 32).store_int(-239, 32).store_uint(0, 104)
    state.store_uint(0, 3 * 32 + 64 + 32).store_ref(queue).store_bit(0)
    return state.store_ref(accounts).store_ref(empty).store_bit(0).end()
