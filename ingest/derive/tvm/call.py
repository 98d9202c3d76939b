"""Calls of the TVM and of the emulator, and their results.

The emulator is the node's own code for ordinary and tick-tock transactions: given the state before
a transaction, its message and its block's seed, time and configuration, it reproduces that
transaction bit for bit.
"""

from __future__ import annotations

import binascii

import msgspec

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.context import Context
from tonlake.ingest.derive.tvm.stack import StackValue

SUCCESS = frozenset({0, 1})
"""Exit codes of normal and alternative termination."""

NO_CODE = -13
"""Exit code if there is no code to run: the bitwise not of 12 (fatal error)."""

INVALID_OPCODE = 6
"""Exit code of an instruction that the TVM does not know."""

CELL_UNDERFLOW = 9
"""Exit code of a read past the end of a cell, and of a missing library."""

_METHOD_MARK = 0x10000


class GetMethodCall(msgspec.Struct, frozen=True):
    """A get-method run; cells are bags; ``stack`` has the deepest value first, method id last."""

    code: bytes
    data: bytes | None
    stack: tuple[StackValue, ...]
    context: Context
    libraries: bytes | None = None
    """Hashmap 256 ^Cell: the libraries that library cells resolve to."""
    gas_limit: int | None = None
    """Gas limit; None uses the limit of the settings."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of a run; ``stack`` has the deepest value first."""

    exit_code: int
    gas_used: int
    stack: tuple[StackValue, ...]


def method_id(name: str) -> int:
    """Return the id of a get-method: CRC-16/XMODEM of its name, with bit 16 set."""
    return binascii.crc_hqx(name.encode(), 0) | _METHOD_MARK


_HASH_BYTES, _LT_BITS = 32, 64


class EmulationCall(msgspec.Struct, frozen=True):
    """A transaction to emulate; cells are bags."""

    account: bytes
    """ShardAccount: the state before, and its last transaction."""
    message: bytes | None
    """External or internal message; None emulates a tick-tock transaction."""
    config: bytes
    """Hashmap 32 ^Cell: the configuration after the referenced masterchain block."""
    now: int
    """Unix time of the block."""
    lt: int
    """Minimum logical time of the transaction."""
    libraries: bytes | None = None
    """Hashmap 256 ^Cell: the libraries that library cells resolve to."""
    previous: StackValue = None
    """PrevBlocksInfo as of that masterchain block (module ``context``)."""
    rand_seed: bytes = bytes(_HASH_BYTES)
    """Random seed of the block."""
    ignore_chksig: bool = False
    """Whether every signature is accepted as valid."""
    is_tock: bool = False
    """Whether a tick-tock transaction is tock."""


class Emulated(msgspec.Struct, frozen=True):
    """An emulated transaction, and the ShardAccount after it, as bags."""

    transaction: bytes
    account: bytes


class NotAccepted(msgspec.Struct, frozen=True):
    """An external message that the contract does not accept: there is no transaction.

    ``exit_code`` is None if the run ended without one: the contract returned without accepting, or
    has no code.
    """

    exit_code: int | None


def join_shard_account(account: bytes | None, last_trans_hash: bytes, last_trans_lt: int) -> bytes:
    """Return ShardAccount: account_descr$_ account:^Account last_trans_hash last_trans_lt.

    If ``account`` is None, the state is account_none$0, as before the first message of an account.
    """
    if account is None:
        tree = CellTree()
        root = CellBuilder(tree).store_bit(0).end()
    else:
        tree = parse_boc(account)
        root = tree.roots[0]
    builder = CellBuilder(tree).store_ref(root).store_bytes(last_trans_hash)
    return serialize_boc(tree, [builder.store_uint(last_trans_lt, _LT_BITS).end()])


def split_shard_account(boc: bytes) -> tuple[bytes, bytes, int]:
    """Return Account as a bag, last_trans_hash and last_trans_lt of ShardAccount."""
    tree = parse_boc(boc)
    start = tree.slice(tree.roots[0])
    account = serialize_boc(tree, [start.load_ref()])
    return account, start.load_bytes(_HASH_BYTES), start.load_uint(_LT_BITS)
