"""Copies a genuine block to other places and times, with matching hashes.

Changed fields keep their size, so a copy is the same bag of cells with bits overwritten in place.
Logical times get other high bits, common to all of a block: copies begin at multiples of a million.

Every account that a transaction touches gets a new state and new data. Not changed are the keys of
the message dictionaries and bodies: equal bodies, and equal external messages, recur in every copy.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from math import gcd

import msgspec

from tests.made import spots
from tonlake.ingest.blocks import BlockId, RawBlock
from tonlake.ingest.decode.block.header import read_header, read_parts
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.tree import MAX_LEVEL, MERKLE_UPDATE, ORDINARY
from tonlake.ingest.decode.cell.writer import serialize_boc

_GLOBAL_ID_AT, _SEQNO_AT, _UTIME_AT, _START_LT_AT, _END_LT_AT = 32, 80, 248, 280, 344
_SHARD_BITS_AT, _PREFIX_AT = 146, 184
"""Bits in Block (global_id) and BlockInfo (seq_no, gen_utime, start_lt, end_lt, shard)."""

_TX_LT_AT, _PREV_AT = 260, 324
"""Bits in Transaction: lt; prev_trans_hash, prev_trans_lt and now, one after the other."""

_LT_ALIGN = 1_000_000
"""Blocks begin at multiples of it (validator/impl/collator.cpp)."""

Hashes = tuple[list[bytes], list[bytes]]
"""Hashes of all cells: at their own level, and at level 0."""

Last = tuple[bytes, int, bytes]
"""Hash and logical time of the last transaction of an account, and its state's hash."""

_Plan = tuple[int, int, tuple[int, ...], bytes, bytes | None]
"""Where a cell begins and ends, its children, and their depths at their own level and at 0."""


class Link(msgspec.Struct, frozen=True):
    """A reference to a block. TL-B: ext_blk_ref; ``start_lt`` is for shard_descr."""

    id: BlockId
    start_lt: int
    end_lt: int


class Place(msgspec.Struct, frozen=True):
    """The place of a copy: ``number``, from 1, determines the high bits of its logical times.

    ``prev`` None is a zero state. ``master`` is the block that a shard block refers to, ``tops``
    the newest shard blocks that a masterchain block commits, in the order of their shards.
    """

    number: int
    seqno: int
    utime: int
    prev: Link | None
    master: Link | None = None
    tops: tuple[Link, ...] = ()
    shard: int | None = None
    """The shard of a shard block; by default that of the genuine one."""


class Template:
    """A block to be copied; copies differ in all transaction and block hashes."""

    def __init__(self, data: bytes, global_id: int, low_bits: int = 0, shards: int = 1) -> None:
        """Find all bits that change in a copy.

        ``low_bits`` is the number of unchanged bits of a logical time; by default as many as
        differ. A masterchain block gets a power of two of ``shards``.
        """
        tree = parse_boc(data)
        roots = [spots.part_top(tree, shards)] if read_header(tree).workchain == -1 else tree.roots
        self._data = spots.add_index(serialize_boc(tree, roots))
        self._tree = tree = parse_boc(self._data)
        self._starts = spots.list_starts(tree)
        self._parts = read_parts(tree)
        self.header = read_header(tree)
        self._global_id = global_id & 0xFFFFFFFF
        self._accounts = list(spots.list_accounts(tree))
        lts = [one.lt for account in self._accounts for one in account.transactions]
        lts += [self.header.start_lt, self.header.end_lt]
        self.low_bits = low_bits or max((lt ^ lts[-1]).bit_length() for lt in lts)
        common = gcd(1 << self.low_bits, _LT_ALIGN)
        self._stride = _LT_ALIGN // common
        low = self.header.start_lt % (1 << self.low_bits)
        self._first: int = -low // common * pow((1 << self.low_bits) // common, -1, self._stride)
        self._first %= self._stride
        self._messages = list(self._find_messages())
        self._tops = spots.find_tops(tree) if self.header.workchain == -1 else []
        self._plan_hashes()
        self.last: dict[int, Last] = {}
        """By the account's number in the block."""

    @property
    def transactions(self) -> int:
        """Number of transactions in a copy."""
        return sum(len(account.transactions) for account in self._accounts)

    def copy(self, place: Place) -> tuple[RawBlock, Link]:
        """Return the copy of the block at ``place``, and its reference."""
        data = bytearray(self._data)
        header, info = self.header, self._parts.info
        start_lt, end_lt = (
            self._shift(lt, place.number) for lt in (header.start_lt, header.end_lt)
        )
        self._set(data, self._tree.roots[0], _GLOBAL_ID_AT, 32, self._global_id)
        self._set(data, info, _SEQNO_AT, 32, place.seqno)
        self._set(data, info, _UTIME_AT, 32, place.utime)
        self._set(data, info, _START_LT_AT, spots.LT_BITS, start_lt)
        self._set(data, info, _END_LT_AT, spots.LT_BITS, end_lt)
        refs = self._tree.links[info]
        self._set_link(data, refs[-1], place.prev, place.seqno - 1)
        if place.master is not None:
            self._set_link(data, refs[0], place.master, 0)
        shard = header.shard
        if place.shard is not None:
            shard, low = place.shard, place.shard & -place.shard
            self._set(data, info, _SHARD_BITS_AT, 6, 64 - low.bit_length())
            self._set(data, info, _PREFIX_AT, 64, (shard - low) % (1 << 64))
        for spot, top in zip(self._tops, place.tops, strict=False):
            self._set_top(data, spot, top, place.seqno)
        root_hash = self._set_transactions(data, place)
        own = BlockId(header.workchain, shard, place.seqno, root_hash, sha256(data).digest())
        return RawBlock(own, bytes(data)), Link(own, start_lt, end_lt)

    def _shift(self, lt: int, number: int) -> int:
        """Return a logical time of the template as in a copy."""
        behind = lt >> self.low_bits != self.header.start_lt >> self.low_bits
        return self._high(number - behind) << self.low_bits | lt & (1 << self.low_bits) - 1

    def _high(self, number: int) -> int:
        """Return the high bits of the logical times of a copy."""
        return self._first + number * self._stride

    def _set(self, data: bytearray, cell: int, at: int, count: int, value: int) -> None:
        spots.set_bits(data, (self._starts[cell] + 2) * 8 + at, count, value)

    def _set_link(self, data: bytearray, cell: int, link: Link | None, seqno: int) -> None:
        """Overwrite an ExtBlkRef."""
        end_lt, root_hash, file_hash = 0, bytes(32), bytes(32)
        if link is not None:
            end_lt, seqno = link.end_lt, link.id.seqno
            root_hash, file_hash = link.id.root_hash, link.id.file_hash
        value = end_lt.to_bytes(8, "big") + seqno.to_bytes(4, "big") + root_hash + file_hash
        self._set(data, cell, 0, len(value) * 8, int.from_bytes(value, "big"))

    def _set_top(self, data: bytearray, spot: tuple[int, int], top: Link, mc_seqno: int) -> None:
        """Overwrite the head of a ShardDescr, up to file_hash."""
        cell, at = spot
        value = top.id.seqno.to_bytes(4, "big") + mc_seqno.to_bytes(4, "big")
        value += top.start_lt.to_bytes(8, "big") + top.end_lt.to_bytes(8, "big")
        value += top.id.root_hash + top.id.file_hash
        self._set(data, cell, at + 4, len(value) * 8, int.from_bytes(value, "big"))

    def _set_transactions(self, data: bytearray, place: Place) -> bytes:
        """Overwrite states, labels, messages, transactions; return the hash of the root."""
        number, tree = place.number, self._tree
        hashes = self._hashes[0].copy(), self._hashes[1].copy()
        for account in self._accounts:
            self._set(data, *account.label, spots.LT_BITS - self.low_bits, self._high(number))
            for cell, at in account.marks:
                self._set(data, cell, at, 32, number)
        self._hash_cells(data, self._states, hashes)
        for cell, at, lt in self._messages:
            self._set(data, cell, at, spots.LT_BITS, self._shift(lt, number))
        self._hash_cells(data, self._below, hashes)
        for index, account in enumerate(self._accounts):
            last = self.last.get(index, (bytes(32), 0, b""))
            for one in account.transactions:
                is_last = one is account.transactions[-1]
                old, new = (tree.payload(one.hash_update)[at : at + 32] for at in (1, 33))
                if not is_last:
                    new = sha256(new + number.to_bytes(8, "big")).digest()
                elif account.state is not None:
                    new = hashes[1][account.state]
                states = (last[2] or old) + new
                self._set(data, one.hash_update, 8, 512, int.from_bytes(states, "big"))
                lt = self._shift(one.lt, number)
                link = last[0] + last[1].to_bytes(8, "big") + place.utime.to_bytes(4, "big")
                self._set(data, one.cell, _TX_LT_AT, spots.LT_BITS, lt)
                self._set(data, one.cell, _PREV_AT, len(link) * 8, int.from_bytes(link, "big"))
                self._hash_cells(data, (one.hash_update, one.cell), hashes)
                last = hashes[0][one.cell], lt, new
            self.last[index] = last
        self._hash_cells(data, self._above, hashes)
        return hashes[0][tree.roots[0]]

    def _hash_cells(self, data: bytearray, cells: Iterable[int], hashes: Hashes) -> None:
        """Rehash cells whose children are hashed: at their own level, and at level 0."""
        tops, bottoms = hashes
        plans = self._plans
        parts: tuple[bytes | bytearray, ...]
        for cell in cells:
            start, end, kids, depths, low_depths = plans[cell]
            if low_depths is None:
                parts = (data[start:end], depths, *[tops[kid] for kid in kids])
                tops[cell] = bottoms[cell] = sha256(b"".join(parts)).digest()
                continue
            if not data[start] >> 5:  # a Merkle update, which holds the hashes of its children
                data[start + 3 : start + 67] = bottoms[kids[0]] + bottoms[kids[1]]
                parts = (data[start:end], depths, *[tops[kid] for kid in kids])
                tops[cell] = bottoms[cell] = sha256(b"".join(parts)).digest()
                continue
            head = bytes((data[start] & 31,)) + data[start + 1 : end]
            parts = (head, low_depths, *[bottoms[kid] for kid in kids])
            bottoms[cell] = low = sha256(b"".join(parts)).digest()
            parts = (data[start : start + 2], low, depths, *[tops[kid] for kid in kids])
            tops[cell] = sha256(b"".join(parts)).digest()

    def _plan_cell(self, cell: int) -> _Plan:
        """Return the data needed to hash a cell; the depths at level 0 only where levels matter."""
        tree, start = self._tree, self._starts[cell]
        kids = tree.links[cell]
        depths, low = (
            b"".join(tree.depth(kid, level).to_bytes(2, "big") for kid in kids)
            for level in (MAX_LEVEL, 0)
        )
        plain = tree.kind(cell) == ORDINARY and not tree.level_mask(cell)
        return start, start + len(tree.cells[cell]), kids, depths, None if plain else low

    def _find_messages(self) -> Iterator[tuple[int, int, int]]:
        """Yield cell, bit and value of ``created_lt`` of internal messages that may change."""
        tree = self._tree
        fixed = spots.reach(tree, self._parts.state_update)
        seen = set()
        for account in self._accounts:
            for one in account.transactions:
                for cell in spots.list_messages(tree, tree.links[one.cell][0]):
                    at = spots.find_created_lt(tree, cell)
                    if at is not None and cell not in fixed and cell not in seen:
                        seen.add(cell)
                        node = tree.slice(cell)
                        node.skip(at)
                        yield cell, at, node.load_uint(spots.LT_BITS)

    def _plan_hashes(self) -> None:
        """List the cells to rehash, children first: states, cells below transactions, rest."""
        tree = self._tree
        refs = tree.links[self._parts.info]
        transactions = {one.cell for account in self._accounts for one in account.transactions}
        updates = {one.hash_update for account in self._accounts for one in account.transactions}
        changed = {tree.roots[0], self._parts.info, refs[0], refs[-1]} | transactions | updates
        changed |= {cell for cell, _at in self._tops}
        changed |= {cell for cell, _at, _lt in self._messages}
        changed |= {cell for account in self._accounts for cell, _at in account.marks}
        changed |= {account.label[0] for account in self._accounts}
        above: set[int] = set()
        for cell in range(tree.count - 1, -1, -1):
            kids = tree.links[cell]
            if not transactions.isdisjoint(kids) or not above.isdisjoint(kids):
                above.add(cell)
            if not changed.isdisjoint(kids):
                changed.add(cell)
        for cell in changed:
            if tree.level_mask(cell) > 1 or tree.kind(cell) not in (ORDINARY, MERKLE_UPDATE):
                raise ValueError(f"cell {cell} would change, and cannot be hashed again here")
        self._plans = {cell: self._plan_cell(cell) for cell in changed}
        cells = range(tree.count)
        self._hashes = [tree.hash(cell) for cell in cells], [tree.hash(cell, 0) for cell in cells]
        states = spots.reach(tree, self._parts.state_update) & changed
        below = changed - above - transactions - updates - states
        self._states, self._below = sorted(states, reverse=True), sorted(below, reverse=True)
        self._above = sorted(changed & above - transactions, reverse=True)
