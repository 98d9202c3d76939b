"""Generates a whole shard state of any size.

Half of the accounts are wallets, 45 % jetton wallets, the others have no code; code, jetton master
and the other accounts of the first blocks are those of the demo node. The state is written to a
file as a node writes it, and to a celldb. No block names its hash.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from contextlib import closing
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from rocksdict import Options, Rdict, WriteBatch

from tonlake.ingest.decode.cell.dictionary import store_label
from tonlake.ingest.decode.cell.packed import Loaded
from tonlake.ingest.decode.cell.record import append_packed
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.wholestate import decode_accounts, load_branch
from tonlake.ingest.source.node.bag import StateBag
from tonlake.ingest.source.node.celldb import CellDb
from tonlake.ingest.source.node.shardstate import (
    CellDbStates,
    NamedState,
    NamedStates,
    name_states,
)
from tonlake.ingest.source.node.source import open_node

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import BinaryIO

    from tonlake.ingest.source.node.shardstate import OpenState

FIRST = 100
FULL_SHARD = -(2**63)
UTIME, LT = 1_763_000_000, 1_000_000
SHARE_WALLETS, SHARE_JETTON_WALLETS = 0.5, 0.45
_KEY_BITS, _REF_BYTES, _OFFSET_BYTES = 256, 4, 8
_ADDRESS_BITS = 267
_TOP_CELLS = 4
_BATCH = 20_000
LOOK_S = 0.2
_NO_CODE, _WALLET, _JETTON_WALLET, _GENUINE = range(4)
_OWN_CELLS = (1, 2, 2, 0)
"""Cells of an account of each kind beside those that many share."""
CODES = {
    _WALLET: bytes.fromhex("feb5ff6820e2ff0d9483e7e0d62c817d846789fb4ae580c878866d959dabd5c0"),
    _JETTON_WALLET: bytes.fromhex(
        "beb0683ebeb8927fe9fc8ec0a18bc7dd17899689825a121eab46c5a3a860d0ce"
    ),
}
INIT_BODY = bytes((2, 1, 0b00110_100))
"""StateInit of a code and data alone."""


class Bits:
    """The bits of a cell under construction."""

    def __init__(self) -> None:
        self.value = self.size = 0

    def store_uint(self, value: int, bits: int) -> Bits:
        self.value = self.value << bits | value
        self.size += bits
        return self

    def store_bit(self, bit: int) -> Bits:
        return self.store_uint(bit, 1)

    def store_grams(self, value: int) -> Bits:
        size = value.bit_length() + 7 >> 3
        return self.store_uint(size, 4).store_uint(value, 8 * size)

    def store_address(self, account: int) -> Bits:
        return self.store_uint(0b100 << 8, 11).store_uint(account, _KEY_BITS)

    def pack(self, refs: int) -> bytes:
        """Return descriptors with data."""
        whole, rest = divmod(self.size, 8)
        if not rest:
            return bytes((refs, 2 * whole)) + self.value.to_bytes(whole, "big")
        value = (self.value << 1 | 1) << 7 - rest
        return bytes((refs, 2 * whole + 1)) + value.to_bytes(whole + 1, "big")


def hash_cell(body: bytes, below: Sequence[tuple[bytes, int]] = ()) -> tuple[bytes, int]:
    depths = b"".join(depth.to_bytes(2, "big") for _, depth in below)
    digest = sha256(body + depths + b"".join(each for each, _ in below)).digest()
    return digest, 1 + max((depth for _, depth in below), default=-1)


class Account(NamedTuple):
    """An account: its id, kind, balance, data, and the cells that it shares."""

    key: int
    kind: int
    balance: int
    data: bytes = b""
    shared: bytes = b""
    """Hash of the code, or of the whole Account cell of a genuine one."""


class Shared:
    """Genuine accounts after the first blocks of the demo node, and codes; parents come first."""

    def __init__(self, node: Path) -> None:
        self.tree, self.places = CellTree(), dict[bytes, int]()
        self.accounts: list[Account] = []
        self.masters: list[int] = []
        with closing(open_node(node)) as source, closing(CellDb(node / "celldb")) as celldb:
            self.named = name_states(source, FIRST - 1)
            for each in self.named.states:
                if not each.workchain:
                    with CellDbStates(celldb).open(self.named, each) as opened:
                        self._take(opened)
            for code in CODES.values():
                append_packed(self.tree, code, Loaded(celldb, [code]).unpack(), self.places)

    def _take(self, opened: OpenState) -> None:
        for part in opened.parts:
            for branch, loaded in load_branch(part.store, part.accounts):
                at = opened.top.describe(FIRST - 1)
                _, tables = decode_accounts(branch, loaded, at, (), only_active=False)
                cells = loaded.unpack()
                for row in tables["account_states"].to_pylist():
                    append_packed(self.tree, row["hash"], cells, self.places)
                    key = int.from_bytes(row["account"], "big")
                    self.accounts.append(Account(key, _GENUINE, row["balance"], b"", row["hash"]))
                    if row["code_hash"] == CODES[_JETTON_WALLET]:
                        data = self.tree.slice(self.places[row["data_hash"]])
                        data.load_coins()
                        data.skip(_ADDRESS_BITS + 11)
                        self.masters.append(data.load_uint(_KEY_BITS))

    def digest(self, cell_hash: bytes) -> tuple[bytes, int]:
        return cell_hash, self.tree.depth(self.places[cell_hash])


def draw_accounts(count: int, shared: Shared, seed: int = 1) -> list[Account]:
    """Return accounts by id: genuine ones, and random ones up to a number."""
    luck = random.Random(seed)  # noqa: S311 - the same accounts for the same seed
    found = {each.key: each for each in shared.accounts}
    jetton_code = shared.digest(CODES[_JETTON_WALLET])
    while len(found) < count:
        key, draw = luck.getrandbits(_KEY_BITS), luck.random()
        balance = int(10 ** (12 * luck.random()))
        if draw < SHARE_WALLETS:
            data = Bits().store_uint(int(20 * draw), 32).store_uint(698983191, 32)
            data.store_uint(luck.getrandbits(_KEY_BITS), _KEY_BITS).store_bit(0)
            kind, body = _WALLET, data.pack(0)
        elif draw < SHARE_WALLETS + SHARE_JETTON_WALLETS:
            owner, master = key, luck.choice(shared.masters)
            empty, full = (
                Bits().store_grams(each).store_address(owner).store_address(master).pack(1)
                for each in (0, balance)
            )
            init = hash_cell(INIT_BODY, [jetton_code, hash_cell(empty, [jetton_code])])
            key, kind, body = int.from_bytes(init[0], "big"), _JETTON_WALLET, full
        else:
            kind, body = _NO_CODE, b""
        found[key] = Account(key, kind, balance, body, CODES.get(kind, b""))
    return [found[key] for key in sorted(found)]


def pack_account(account: Account) -> bytes:
    """Return the body of an Account cell."""
    cell = Bits().store_bit(1).store_address(account.key)
    cell.store_uint(1, 3).store_uint(20, 8).store_uint(2, 3).store_uint(5000, 16).store_uint(0, 3)
    cell.store_uint(UTIME, 32).store_bit(0).store_uint(LT, 64)
    cell.store_grams(account.balance).store_bit(0)
    if account.kind == _NO_CODE:
        return cell.store_uint(0b00, 2).pack(0)
    return cell.store_uint(0b1_00110, 6).pack(2)


class StateWriter:
    """Writes a state as one bag; only the accounts are kept in memory."""

    def __init__(self, stream: BinaryIO, accounts: Sequence[Account], shared: Shared) -> None:
        self._stream = stream
        self._accounts = accounts
        self._keys = [each.key for each in accounts]
        self._shared = shared
        self._cells = [0, *accumulate(_OWN_CELLS[each.kind] for each in accounts)]
        self._balances = [0, *accumulate(each.balance for each in accounts)]
        self._first_shared = _TOP_CELLS + self._size(0, len(accounts))
        self._count = 0

    def write(self) -> None:
        total = self._first_shared + self._shared.tree.count
        head = bytes.fromhex("b5ee9c72") + bytes((_REF_BYTES, _OFFSET_BYTES))
        head += b"".join(each.to_bytes(_REF_BYTES, "big") for each in (total, 1, 0))
        self._stream.write(head + bytes(_OFFSET_BYTES + _REF_BYTES))
        start = self._stream.tell()
        self._write_top()
        self._write_dictionary()
        tree = self._shared.tree
        for cell in range(tree.count - 1, -1, -1):
            self._write_cell(tree.cells[cell], *map(self._place, tree.links[cell]))
        size = self._stream.tell() - start
        self._stream.seek(len(head))
        self._stream.write(size.to_bytes(_OFFSET_BYTES, "big"))

    def _place(self, shared: int) -> int:
        return self._first_shared + self._shared.tree.count - 1 - shared

    def _size(self, low: int, high: int) -> int:
        """Return the cells of a node over some accounts, without shared ones."""
        return 2 * (high - low) - 1 + self._cells[high] - self._cells[low]

    def _write_cell(self, body: bytes, *refs: int) -> None:
        self._stream.write(body + b"".join(ref.to_bytes(_REF_BYTES, "big") for ref in refs))
        self._count += 1

    def _write_top(self) -> None:
        root = Bits().store_uint(0x9023AFE2, 32).store_uint(-777 & (1 << 32) - 1, 32)
        root.store_uint(0, 2 + 6 + 32 + 64)  # the shard: all of workchain 0
        root.store_uint(FIRST, 32).store_uint(0, 32).store_uint(UTIME, 32).store_uint(LT, 64)
        root.store_uint(FIRST - 1, 32).store_bit(0).store_bit(0)
        self._write_cell(root.pack(3), 1, 2, 3)
        self._write_cell(Bits().pack(0))
        held = Bits().store_bit(1).store_uint(0, 5)
        self._write_cell(held.store_grams(self._balances[-1]).store_bit(0).pack(1), _TOP_CELLS)
        totals = Bits().store_uint(0, 128).store_grams(self._balances[-1]).store_bit(0)
        self._write_cell(totals.store_uint(0, 4 + 1 + 1 + 1).pack(0))

    def _write_dictionary(self) -> None:
        todo = [(0, len(self._accounts), _KEY_BITS)]
        while todo:
            low, high, left = todo.pop()
            first, last = self._keys[low], self._keys[high - 1]
            rest = (first ^ last).bit_length()
            node = Bits()
            label = (first & (1 << left) - 1) >> rest
            store_label(node, label, left - rest, left)  # type: ignore[arg-type]
            node.store_uint(0, 5)
            node.store_grams(self._balances[high] - self._balances[low]).store_bit(0)
            if not rest:
                self._write_leaf(node, self._accounts[low])
                continue
            middle = bisect_left(self._keys, last >> rest - 1 << rest - 1, low, high)
            below = self._count + 1
            self._write_cell(node.pack(2), below, below + self._size(low, middle))
            todo += [(middle, high, rest - 1), (low, middle, rest - 1)]

    def _write_leaf(self, node: Bits, account: Account) -> None:
        node.store_uint(account.key ^ (1 << _KEY_BITS) - 1, _KEY_BITS).store_uint(LT, 64)
        if account.kind == _GENUINE:
            self._write_cell(node.pack(1), self._place(self._shared.places[account.shared]))
            return
        at = self._count + 1
        self._write_cell(node.pack(1), at)
        if account.kind == _NO_CODE:
            self._write_cell(pack_account(account))
            return
        code = self._place(self._shared.places[account.shared])
        self._write_cell(pack_account(account), code, at + 1)
        self._write_cell(account.data, *[code] * (account.data[0] & 7))


def write_celldb(bag: StateBag, folder: Path) -> None:
    """Write all cells of a state in celldb's format."""
    celldb = Rdict(str(folder), Options(raw_mode=True))
    batch = WriteBatch(raw_mode=True)
    for cell in range(bag.cells.count):
        body, refs = bag.cells.read(cell)
        below = [bag.get_digest(ref.to_bytes(bag.cells.width, "big")) for ref in refs]
        shown = [bytes(1) + each + depth.to_bytes(2, "big") for each, depth in below]
        key, _ = bag.get_digest(cell.to_bytes(bag.cells.width, "big"))
        batch.put(key, b"".join([b"\1\0\0\0", body, *shown]))
        if batch.len() >= _BATCH:
            celldb.write(batch)
            batch = WriteBatch(raw_mode=True)
    celldb.write(batch)
    celldb.flush()
    celldb.close()


def make_state(folder: Path, accounts: int, node: Path, *, celldb: bool) -> NamedStates:
    """Write the state, unless it exists, and return the reference that a block would have."""
    shared = Shared(node)
    states = folder / "state" / "archive" / "states"
    path = states / f"state_{FIRST - 1}_0_8000000000000000_{accounts:064X}"
    if not path.exists():
        states.mkdir(parents=True, exist_ok=True)
        drawn = draw_accounts(accounts, shared)
        with path.with_suffix(".part").open("w+b") as stream:
            StateWriter(stream, drawn, shared).write()
        path.with_suffix(".part").replace(path)
    with closing(StateBag(path, path.name)) as bag:
        root_hash, _ = bag.get_digest(bag.root)
        if celldb and not (folder / "celldb").exists():
            write_celldb(bag, folder / "celldb")
    named = shared.named
    states_named = [each for each in named.states if each.workchain]
    made = NamedState(0, FULL_SHARD, root_hash)
    return named._replace(states=(*states_named, made))
