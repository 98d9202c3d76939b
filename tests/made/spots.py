"""Finds the bits of a block that a copy overwrites (module ``template``)."""

from collections.abc import Iterator

import msgspec

from tonlake.ingest.decode.block.header import (
    _iter_shards,
    read_extra,
    read_mc_extra,
    read_parts,
    skip_currencies,
)
from tonlake.ingest.decode.block.message import read_address
from tonlake.ingest.decode.block.state import iter_shard_accounts, read_state
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap, iter_hashmap_slice
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import ORDINARY, CellTree

LT_BITS = 64
_FLAGS_AT, _OFFSET_BYTES_AT, _HAS_INDEX = 4, 5, 0x80
"""Bytes in the head of a bag, and the flag that an index follows it."""

_LABEL_LENGTH_BITS = 7
"""Bits of a label's length in a dictionary with 64-bit keys: bit_length(64)."""

_ACCOUNT_HEAD_BITS = 260
"""Bits of AccountBlock before its dictionary of transactions."""

_HASH_UPDATE_TAG, _HASH_UPDATE_BITS = 0x72, 8 + 2 * 256
_DATA_BITS = 32


class Transaction(msgspec.Struct, frozen=True):
    """A transaction: its logical time, its cell, and the cell of its HASH_UPDATE."""

    lt: int
    cell: int
    hash_update: int


class AccountSpot(msgspec.Struct, frozen=True):
    """An account of a block: its transactions by logical time, and its cell after them.

    ``label`` is cell and bit of the label at the root of the transactions' dictionary. ``state`` is
    None where the account does not exist afterwards; ``marks`` are cell and bit of 32 bits in the
    state that may have any value: part of last_paid, and of the data.
    """

    transactions: list[Transaction]
    label: tuple[int, int]
    state: int | None
    marks: list[tuple[int, int]]


def set_bits(data: bytearray, at: int, count: int, value: int) -> None:
    """Overwrite ``count`` bits, starting at bit ``at``."""
    first, last = at >> 3, at + count + 7 >> 3
    shift = (last << 3) - at - count
    mask = (1 << count) - 1 << shift
    old = int.from_bytes(data[first:last], "big")
    data[first:last] = (old & ~mask | value << shift).to_bytes(last - first, "big")


def list_starts(tree: CellTree) -> list[int]:
    """Return the offset of each cell's d1; the cells are stored consecutively at the end."""
    ref_bytes = tree.data[4] & 7
    sizes = [
        len(cell) + len(kids) * ref_bytes for cell, kids in zip(tree.cells, tree.links, strict=True)
    ]
    at = len(tree.data) - sum(sizes)
    starts = []
    for size in sizes:
        starts.append(at)
        at += size
    return starts


def add_index(bag: bytes) -> bytes:
    """Return a bag of one root with an index of cell ends, as in the blocks of a node."""
    tree = parse_boc(bag)
    starts = list_starts(tree)
    width = bag[_OFFSET_BYTES_AT]
    ends = [at - starts[0] for at in (*starts[1:], len(bag))]
    index = b"".join(end.to_bytes(width, "big") for end in ends)
    head = bag[:_FLAGS_AT] + bytes((bag[_FLAGS_AT] | _HAS_INDEX,)) + bag[_FLAGS_AT + 1 : starts[0]]
    return head + index + bag[starts[0] :]


def find_tops(tree: CellTree) -> list[tuple[int, int]]:
    """Return cell and bit of every ShardDescr."""
    root = read_mc_extra(tree).shard_hashes
    return (
        [
            (leaf.cell, leaf.pos)
            for _workchain, value in iter_hashmap(tree, root, 32)
            for _shard, leaf in _iter_shards(tree, value.load_ref())
        ]
        if root is not None
        else []
    )


def part_top(tree: CellTree, shards: int) -> int:
    """Return a root with a ShardDescr for each of ``shards``, in cells of its own alone."""
    custom = read_extra(tree, read_parts(tree)).custom
    hashes = read_mc_extra(tree).shard_hashes
    ((old, at),) = find_tops(tree)
    data, level = bytearray(tree.cells[old]), []
    for number in range(shards):
        set_bits(data, 16 + at + 4, 32, 0xFFFFFFFF - number)
        level.append(tree.append(bytes(data), tree.links[old]))
    while len(level) > 1:  # bt_fork$1 left:^(BinTree X) right:^(BinTree X)
        level = [
            tree.append(b"\2\1\xc0", pair) for pair in zip(level[::2], level[1::2], strict=True)
        ]
    new = level[0]
    for cell in (hashes, custom, read_parts(tree).extra, tree.roots[0]):
        if cell is None or old not in tree.links[cell]:
            raise ValueError("only masterchain blocks over one shard can be copied")
        kids = tuple(new if kid == old else kid for kid in tree.links[cell])
        old, new = cell, tree.append(tree.cells[cell], kids)
    return new


def reach(tree: CellTree, root: int) -> set[int]:
    found, todo = {root}, [root]
    while todo:
        new = [kid for kid in tree.links[todo.pop()] if kid not in found]
        found.update(new)
        todo += new
    return found


def list_accounts(tree: CellTree) -> Iterator[AccountSpot]:
    """Yield the accounts with transactions in a block."""
    parts = read_parts(tree)
    states = {
        entry.account: entry.cell
        for entry in iter_shard_accounts(
            tree, read_state(tree, tree.links[parts.state_update][1]).accounts
        )
        if tree.kind(entry.cell) == ORDINARY and tree.slice(entry.cell).peek_uint(1)
    }
    root = tree.slice(read_extra(tree, parts).account_blocks).load_maybe_ref()
    for account, leaf in iter_hashmap(tree, root, 256) if root is not None else ():
        skip_currencies(leaf)
        leaf.skip(_ACCOUNT_HEAD_BITS)
        label = (leaf.cell, _find_label(leaf.copy()))
        transactions = []
        for lt, entry in iter_hashmap_slice(leaf, LT_BITS):
            skip_currencies(entry)
            cell = entry.load_ref()
            transactions.append(Transaction(lt, cell, _find_hash_update(tree, cell)))
        state = states.get(account.to_bytes(32, "big"))
        marks = [] if state is None else list(_list_marks(tree, state))
        yield AccountSpot(sorted(transactions, key=lambda one: one.lt), label, state, marks)


def _find_label(node: CellSlice) -> int:
    """Return the first bit of a label's text."""
    if not node.load_bit():
        while node.load_bit():
            pass
        return node.pos
    if node.load_bit():
        raise ValueError("a label of equal bits cannot be overwritten")
    node.skip(_LABEL_LENGTH_BITS)
    return node.pos


def _find_hash_update(tree: CellTree, transaction: int) -> int:
    """TL-B: update_hashes#72 old_hash:bits256 new_hash:bits256."""
    for cell in tree.links[transaction]:
        if tree.bit_length(cell) == _HASH_UPDATE_BITS and tree.payload(cell)[0] == _HASH_UPDATE_TAG:
            return cell
    raise ValueError(f"transaction {transaction} has no HASH_UPDATE")


def _list_marks(tree: CellTree, state: int) -> Iterator[tuple[int, int]]:
    """TL-B: account$1 addr storage_stat:(used:(cells bits extra) last_paid:uint32 ...) ..."""
    node = tree.slice(state)
    node.skip(1)
    read_address(node)
    node.load_var_uint(3)
    node.load_var_uint(3)
    if node.load_uint(3):
        node.skip(256)
    yield state, node.pos
    refs = tree.links[state]
    if refs and tree.kind(refs[-1]) == ORDINARY and tree.bit_length(refs[-1]) > _DATA_BITS:
        yield refs[-1], tree.bit_length(refs[-1]) - _DATA_BITS


def list_messages(tree: CellTree, cell: int) -> Iterator[int]:
    """Yield the messages of a transaction. TL-B: ^[in_msg:(Maybe ^M) out_msgs:(HashmapE 15 ^M)]."""
    node = tree.slice(cell)
    came_in = node.load_maybe_ref()
    if came_in is not None:
        yield came_in
    out = node.load_maybe_ref()
    if out is not None:
        for _index, leaf in iter_hashmap(tree, out, 15):
            yield leaf.load_ref()


def find_created_lt(tree: CellTree, cell: int) -> int | None:
    """Return the bit of created_lt in int_msg_info$0 between standard addresses, else None."""
    node = tree.slice(cell)
    if node.load_bit():
        return None
    node.load_uint(3)
    for _end in range(2):
        if node.load_uint(3) != 0b100:
            return None
        node.load_uint(264)
    node.load_coins()
    node.load_maybe_ref()
    node.load_coins()
    node.load_coins()
    return node.pos
