"""Accounts of a synthetic network: code, data, address, and their state in a block.

TL-B: account$1, storage_info$_, account_storage$_, account_active$1, StateInit, MsgAddressInt. The
data layouts are those of the genuine codes: wallets v3r2, v4r2, v5r1, TEP-74 masters and wallets.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from tests.bench.network.code import WALLET_V3, WALLET_V4, WALLET_V5
from tests.ingest.updates import end_pruned
from tonlake.ingest.decode.block.account import NONEXIST_HASH
from tonlake.ingest.decode.cell.build import CellBuilder, graft_cell
from tonlake.ingest.decode.cell.tree import CellTree

if TYPE_CHECKING:
    from tests.bench.network.code import Part

UNINIT, ACTIVE, NONEXIST = 0, 2, 3
"""AccountStatus: acc_state_uninit$00, acc_state_active$10, acc_state_nonexist$11."""

ADDRESS_BITS = 3 + 8 + 256
WALLET_CODES = (WALLET_V3, WALLET_V4, WALLET_V5)
SUBWALLET = 698_983_191
USED_CELLS, USED_BITS = 20, 6_000


class Sheet:
    """The tree of one block, with its shared parts."""

    def __init__(self, known: set[bytes] | None) -> None:
        """Begin a tree; ``known`` are the parts that the state already has, None for all."""
        self.tree = CellTree()
        self._known = known
        self._full: dict[bytes, int] = {}
        self._shown: dict[bytes, int] = {}
        self.new: set[bytes] = set()
        """Parts that this block is the first to show."""

    def cell(self) -> CellBuilder:
        """Begin a cell."""
        return CellBuilder(self.tree)

    def copy(self, part: Part) -> int:
        """Return the root cell of a part, with everything below it."""
        if part.hash not in self._full:
            self._full[part.hash] = graft_cell(self.tree, part.tree, part.root)
        return self._full[part.hash]

    def show(self, part: Part) -> int:
        """Return a part as in the state's update: pruned, unless it is new."""
        if self._known is not None and part.hash not in self._known:
            self.new.add(part.hash)
            return self.copy(part)
        if part.hash not in self._shown:
            self._shown[part.hash] = end_pruned(self.tree, 1, [part.hash], [part.depth])
        return self._shown[part.hash]


def store_address(builder: CellBuilder, address: int) -> CellBuilder:
    """Store addr_std$10 of the basechain, without anycast."""
    return builder.store_uint(0b100 << 264 | address, ADDRESS_BITS)


class Contract:
    """One account: its code, data and newest state.

    One number in its data changes: a wallet's seqno, an amount of jettons, a count of calls.
    """

    code: Part
    address: int
    count = 0
    status = NONEXIST
    balance = 0
    last_lt, last_hash = 0, bytes(32)
    end_lt = 0
    state_hash = NONEXIST_HASH

    def store_data(self, sheet: Sheet, count: int, *, shown: bool) -> int:
        """Return the data cell with a number; parts as in the state update, or in full."""
        raise NotImplementedError

    def find_address(self) -> int:
        """Return the address derived from its first state."""
        sheet = Sheet(None)
        return int.from_bytes(sheet.tree.hash(self.store_init(sheet, shown=True), 0), "big")

    def store_init(self, sheet: Sheet, *, shown: bool = False) -> int:
        """Return the cell of its StateInit: in full, or ``shown`` as in the update."""
        code = sheet.show(self.code) if shown else sheet.copy(self.code)
        builder = sheet.cell().store_uint(0b00110, 5).store_ref(code)
        return builder.store_ref(self.store_data(sheet, 0, shown=shown)).end()

    def store_state(self, sheet: Sheet, address: int, now: int) -> int:
        """Return the cell of its Account, as in the state's update."""
        builder = store_address(sheet.cell().store_bit(1), address)
        builder.store_var_uint(USED_CELLS, 3).store_var_uint(USED_BITS, 3)
        builder.store_uint(0, 3).store_uint(now, 32).store_bit(0)
        builder.store_uint(self.end_lt, 64).store_coins(self.balance).store_bit(0)
        if self.status == UNINIT:
            return builder.store_uint(0b00, 2).end()
        builder.store_uint(0b1_00110, 6).store_ref(sheet.show(self.code))
        return builder.store_ref(self.store_data(sheet, self.count, shown=True)).end()


class Wallet(Contract):
    """A wallet of one of three versions, with a key of its own."""

    def __init__(self, code: Part, version: int, key: bytes) -> None:
        """Take the code, its index in ``WALLET_CODES``, and the public key."""
        self.code, self.version, self.key = code, version, key
        self.address = self.find_address()

    def store_data(self, sheet: Sheet, count: int, *, shown: bool) -> int:  # noqa: ARG002 - it has no parts
        """Return the cell of seqno, subwallet and key."""
        builder = sheet.cell()
        if self.version == 2:  # v5r1: signatures are allowed
            builder.store_bit(1)
        builder.store_uint(count, 32).store_uint(SUBWALLET, 32).store_bytes(self.key)
        if self.version:  # no plugins, no extensions
            builder.store_bit(0)
        return builder.end()


class JettonMaster(Contract):
    """A jetton: its supply, administrator, content and wallet code."""

    def __init__(self, code: Part, admin: int, content: Part, wallet_code: Part) -> None:
        """Take the contents of its data; the number is the supply."""
        self.code, self.admin, self.content, self.wallet_code = code, admin, content, wallet_code
        self.address = self.find_address()

    def store_data(self, sheet: Sheet, count: int, *, shown: bool) -> int:
        """Return the cell of supply, administrator, content and wallet code."""
        show = sheet.show if shown else sheet.copy
        builder = store_address(sheet.cell().store_coins(count), self.admin)
        return builder.store_ref(show(self.content)).store_ref(show(self.wallet_code)).end()


class JettonWallet(Contract):
    """A jetton wallet."""

    def __init__(self, master: JettonMaster, owner: int) -> None:
        """Take its jetton and owner; the number is the balance."""
        self.code, self.master, self.owner = master.wallet_code, master.address, owner
        self.address = self.find_address()

    def store_data(self, sheet: Sheet, count: int, *, shown: bool) -> int:
        """Return the cell of balance, owner, jetton and code."""
        show = sheet.show if shown else sheet.copy
        builder = store_address(sheet.cell().store_coins(count), self.owner)
        return store_address(builder, self.master).store_ref(show(self.code)).end()


class Plain(Contract):
    """A non-standard contract that counts its calls: router or pool of an exchange."""

    def __init__(self, code: Part, name: str) -> None:
        """Take the code and the name that its address depends on."""
        self.code, self.name = code, sha256(name.encode()).digest()
        self.address = self.find_address()

    def store_data(self, sheet: Sheet, count: int, *, shown: bool) -> int:  # noqa: ARG002 - it has no parts
        """Return the cell of name and count."""
        return sheet.cell().store_bytes(self.name).store_uint(count, 64).end()
