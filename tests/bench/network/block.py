"""Builds the blocks of a synthetic network cell by cell, in a node's format.

TL-B: block#11ef55aa, block_info#9bc7a987, block_extra#4a33f6fd, acc_trans#5, HashmapAug,
shard_state#9023afe2, account_descr$_, !merkle_update#04. The update contains the accounts of the
block, with code pruned that the state already had; the previous state is fully pruned, and the
message descriptions are empty: no reader of rows looks at them.
"""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from tests.bench.network.contract import Sheet
from tests.bench.network.ledger import Ledger
from tests.bench.spots import add_index
from tests.bench.template import Link
from tests.ingest.updates import end_pruned, end_update
from tonlake.ingest.blocks import BlockId, RawBlock
from tonlake.ingest.decode.cell.writer import serialize_boc

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench.network.ledger import Entry
    from tests.bench.network.traffic import Network
    from tests.bench.template import Place
    from tonlake.ingest.decode.cell.build import CellBuilder

WHOLE_SHARD = -(1 << 63)
_LABEL_SHORT = 3


class Leaf(NamedTuple):
    """An entry of HashmapAug: its key, its amount in the sums above, and its store function."""

    key: int
    amount: int
    store: Callable[[CellBuilder], object]


class NetworkBlocks:
    """Consecutive shard blocks of a network; a source of blocks like ``Template``."""

    def __init__(self, network: Network, global_id: int, lt_step: int) -> None:
        """Take the network, and the logical time difference of consecutive blocks."""
        self._network, self._global_id, self._lt_step = network, global_id, lt_step
        self._known: set[bytes] = set()
        self._state = bytes(32), 0
        self.transactions = 0
        """Number of transactions in the newest block."""

    def copy(self, place: Place) -> tuple[RawBlock, Link]:
        """Return the next block, and its reference."""
        sheet, start_lt = Sheet(self._known), place.number * self._lt_step
        ledger = Ledger(sheet, start_lt, place.utime, self._network.dice)
        if place.number == 1:
            self._network.begin(ledger)
        self._network.act(ledger)
        self.transactions, end_lt = ledger.count, ledger.lt + 2 * (ledger.lt - start_lt)
        update = self._write_update(ledger, place, end_lt)
        builder = sheet.cell().store_uint(0x11EF55AA, 32).store_int(self._global_id, 32)
        builder.store_ref(_write_info(sheet, place, start_lt, end_lt))
        builder.store_ref(sheet.cell().end()).store_ref(update)
        root = builder.store_ref(_write_extra(ledger)).end()
        data = add_index(serialize_boc(sheet.tree, (root,)))
        self._known |= sheet.new
        hashes = sheet.tree.hash(root), sha256(data).digest()
        own = BlockId(0, WHOLE_SHARD, place.seqno, *hashes)
        return RawBlock(own, data), Link(own, start_lt, end_lt)

    def _write_update(self, ledger: Ledger, place: Place, end_lt: int) -> int:
        """Return the cell of the update from the state before to that after the block."""
        sheet = ledger.sheet
        new = _write_state(ledger, place, end_lt, self._global_id)
        old = end_pruned(sheet.tree, 1, [self._state[0]], [self._state[1]])
        self._state = sheet.tree.hash(new, 0), sheet.tree.depth(new, 0)
        return end_update(sheet.tree, old, new)


def _write_info(sheet: Sheet, place: Place, start_lt: int, end_lt: int) -> int:
    builder = sheet.cell().store_uint(0x9BC7A987, 32).store_uint(0, 32)
    builder.store_uint(0b1000_0000, 8).store_uint(0, 8)
    builder.store_uint(place.seqno, 32).store_uint(0, 32)
    _store_shard(builder).store_uint(place.utime, 32)
    builder.store_uint(start_lt, 64).store_uint(end_lt, 64).store_uint(0, 32)
    builder.store_uint(0, 32).store_uint(0, 32).store_uint(0, 32)
    builder.store_ref(_write_link(sheet, place.master, 0))
    return builder.store_ref(_write_link(sheet, place.prev, place.seqno - 1)).end()


def _store_shard(builder: CellBuilder) -> CellBuilder:
    """Store the ShardIdent of the basechain before any split."""
    return builder.store_uint(0, 8).store_int(0, 32).store_uint(0, 64)


def _write_link(sheet: Sheet, link: Link | None, seqno: int) -> int:
    builder = sheet.cell()
    if link is None:
        return builder.store_uint(0, 64).store_uint(seqno, 32).store_uint(0, 512).end()
    builder.store_uint(link.end_lt, 64).store_uint(link.id.seqno, 32)
    return builder.store_bytes(link.id.root_hash).store_bytes(link.id.file_hash).end()


def _write_state(ledger: Ledger, place: Place, end_lt: int, global_id: int) -> int:
    sheet = ledger.sheet
    accounts = []
    for address, contract in ledger.accounts.items():
        state = contract.store_state(sheet, address, ledger.now)
        end = sheet.cell().store_ref(state).store_bytes(contract.last_hash)
        rest = end.store_uint(contract.last_lt, 64).end()
        accounts.append(Leaf(address, contract.balance, _store_all(sheet, rest)))
    builder = sheet.cell().store_uint(0x9023AFE2, 32).store_int(global_id, 32)
    _store_shard(builder).store_uint(place.seqno, 32).store_uint(0, 32)
    builder.store_uint(place.utime, 32).store_uint(end_lt, 64).store_uint(0, 32)
    queue = sheet.cell().store_uint(0, 1 + 64 + 1 + 1).end()
    root, total = _write_aug(sheet, accounts, 256, _store_depth_balance)
    top = sheet.cell().store_bit(1).store_ref(root)
    _store_depth_balance(top, total)
    totals = sheet.cell().store_uint(0, 128).store_coins(total).store_bit(0)
    totals.store_coins(0).store_uint(0, 3)
    builder.store_ref(queue).store_bit(0).store_ref(top.end()).store_ref(totals.end())
    return builder.store_bit(0).end()


def _store_all(sheet: Sheet, cell: int) -> Callable[[CellBuilder], object]:
    """Return a function that stores the bits and references of a cell."""
    return lambda builder: builder.store_slice(sheet.tree.slice(cell))


def _store_depth_balance(builder: CellBuilder, amount: int) -> None:
    builder.store_uint(0, 5).store_coins(amount).store_bit(0)


def _store_currencies(builder: CellBuilder, amount: int) -> None:
    builder.store_coins(amount).store_bit(0)


def _write_extra(ledger: Ledger) -> int:
    sheet = ledger.sheet
    blocks = [
        Leaf(address, sum(entry.fees for entry in entries), _store_account(sheet, address, entries))
        for address, entries in ledger.entries.items()
    ]
    root, fees = _write_aug(sheet, blocks, 256, _store_currencies)
    accounts = sheet.cell().store_bit(1).store_ref(root).store_coins(fees).store_bit(0).end()
    builder = sheet.cell().store_uint(0x4A33F6FD, 32)
    # ImportFees: two amounts; CurrencyCollection: one.
    builder.store_ref(sheet.cell().store_uint(0, 1 + 4 + 4 + 1).end())
    builder.store_ref(sheet.cell().store_uint(0, 1 + 4 + 1).end()).store_ref(accounts)
    builder.store_bytes(ledger.dice.randbytes(32)).store_bytes(bytes(32))
    return builder.store_bit(0).end()


def _store_account(
    sheet: Sheet, address: int, entries: list[Entry]
) -> Callable[[CellBuilder], object]:
    """Return a function that stores an AccountBlock."""

    def store(builder: CellBuilder) -> None:
        builder.store_uint(5, 4).store_uint(address, 256)
        leaves = [Leaf(one.lt, one.fees, partial(_store_ref, one.cell)) for one in entries]
        _store_aug(sheet, builder, leaves, 64, _store_currencies)
        update = sheet.cell().store_uint(0x72, 8).store_bytes(entries[0].old_hash)
        builder.store_ref(update.store_bytes(entries[-1].new_hash).end())

    return store


def _store_ref(cell: int, builder: CellBuilder) -> None:
    builder.store_ref(cell)


def _write_aug(
    sheet: Sheet, leaves: list[Leaf], bits: int, store_extra: Callable[[CellBuilder, int], None]
) -> tuple[int, int]:
    """Return the root of a HashmapAug that is not empty, and the sum of its amounts."""
    builder = sheet.cell()
    total = _store_aug(sheet, builder, sorted(leaves, key=lambda leaf: leaf.key), bits, store_extra)
    return builder.end(), total


def _store_aug(
    sheet: Sheet,
    builder: CellBuilder,
    leaves: list[Leaf],
    bits: int,
    store_extra: Callable[[CellBuilder, int], None],
) -> int:
    """Store a HashmapAug of sorted leaves inline, and return the sum of their amounts."""
    mask = (1 << bits) - 1
    first, last = leaves[0].key & mask, leaves[-1].key & mask
    rest = (first ^ last).bit_length()
    _store_label(builder, first >> rest, bits - rest, bits)
    if not rest:
        store_extra(builder, leaves[0].amount)
        leaves[0].store(builder)
        return leaves[0].amount
    rest -= 1
    cut = next(at for at, leaf in enumerate(leaves) if leaf.key >> rest & 1)
    total = 0
    for half in (leaves[:cut], leaves[cut:]):
        branch = sheet.cell()
        total += _store_aug(sheet, branch, half, rest, store_extra)
        builder.store_ref(branch.end())
    store_extra(builder, total)
    return total


def _store_label(builder: CellBuilder, label: int, length: int, most: int) -> None:
    """Store HmLabel: hml_short$0 for the shortest, else hml_long$10."""
    if length <= _LABEL_SHORT:
        builder.store_uint((1 << length + 1) - 2, length + 2).store_uint(label, length)
    else:
        builder.store_uint(0b10, 2).store_uint(length, most.bit_length())
        builder.store_uint(label, length)
