"""Decodes account cells to rows of ``account_states``.

TL-B: account_none$0, account$1, storage_info$_, account_storage$_, account_uninit$00,
account_frozen$01, account_active$1, StateInit. Two forms of StorageInfo are supported: with
``storage_extra:StorageExtraInfo`` (from global version 11) and, before it, with
``public_cells:(VarUInteger 7)`` in the same place. For nearly every account both are 000. If not,
and the account does not end exactly where its cell ends, the other form is tried.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tonlake.ingest.decode.block.currency import read_extra_currencies
from tonlake.ingest.decode.block.state import iter_cells
from tonlake.ingest.decode.cell.exotic import PRUNED
from tonlake.ingest.errors import DecodeError, IngestError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.boc import CellTree
    from tonlake.ingest.decode.cell.slice import CellSlice

NONEXIST_HASH = sha256(bytes.fromhex("000140")).digest()
"""Hash of account_none$0, a cell of one 0 bit: the state hash of a destroyed account."""

STORAGE_EXTRA_VERSION = 11
"""Global version from which accounts are stored with StorageExtraInfo."""

AccountRow = tuple[Any, ...]
"""A row of the table ``account_states``."""

_STORAGE_EXTRA_TAG = 1
_VAR_UINT_7_BITS = 3


class AccountState(msgspec.Struct, frozen=True):
    """A parsed Account cell; ``extra_currencies``, ``code``, ``data``, ``library`` are cells.

    The other fields are columns of ``account_states``; None if the form has no such field.
    """

    account_status: str
    balance: int = 0
    extra_currencies: int | None = None
    frozen_hash: bytes | None = None
    code: int | None = None
    data: int | None = None
    library: int | None = None
    fixed_prefix_length: int | None = None
    special_tick: bool | None = None
    special_tock: bool | None = None
    storage_cells: int | None = None
    storage_bits: int | None = None
    storage_last_paid: int | None = None
    storage_due_payment: int | None = None
    storage_last_trans_lt: int | None = None


NONEXIST = AccountState("nonexist")


class StateAt(msgspec.Struct, frozen=True):
    """The block after which a state is valid."""

    workchain: int
    shard: int
    block_seqno: int
    mc_seqno: int
    utime: int


class Touched(NamedTuple):
    """An account with transactions in a block: its last one, and its new state hash."""

    account: bytes
    last_trans_lt: int
    last_trans_hash: bytes
    new_hash: bytes


def read_account(tree: CellTree, cell: int, *, global_version: int | None = None) -> AccountState:
    """Read an Account cell; ``global_version`` is that of the block, None if unknown."""
    start = tree.slice(cell)
    if not start.load_bit():
        _check_end(start)
        return NONEXIST
    _skip_address(start)
    used = start.load_var_uint(_VAR_UINT_7_BITS), start.load_var_uint(_VAR_UINT_7_BITS)
    if not start.peek_uint(3):
        return _read_storage(start, used, storage_extra=True)
    is_old = global_version is not None and global_version < STORAGE_EXTRA_VERSION
    try:
        return _read_storage(start.copy(), used, storage_extra=not is_old)
    except IngestError:
        return _read_storage(start, used, storage_extra=is_old)


def _read_storage(cell: CellSlice, used: tuple[int, int], *, storage_extra: bool) -> AccountState:
    """Read everything after StorageUsed.cells and .bits, to the end of the cell."""
    if not storage_extra:
        cell.load_var_uint(_VAR_UINT_7_BITS)  # public_cells
    elif (tag := cell.load_uint(3)) == _STORAGE_EXTRA_TAG:
        cell.load_bytes(32)  # dict_hash
    elif tag:
        raise DecodeError(f"account: StorageExtraInfo with tag {tag}")
    last_paid = cell.load_uint(32)
    due_payment = cell.load_coins() if cell.load_bit() else None
    last_trans_lt = cell.load_uint(64)
    balance, extra_currencies = cell.load_coins(), cell.load_maybe_ref()
    state = _read_state_init(cell) if cell.load_bit() else _read_inactive(cell)
    _check_end(cell)
    return msgspec.structs.replace(
        state,
        balance=balance,
        extra_currencies=extra_currencies,
        storage_cells=used[0],
        storage_bits=used[1],
        storage_last_paid=last_paid,
        storage_due_payment=due_payment,
        storage_last_trans_lt=last_trans_lt,
    )


def _read_inactive(cell: CellSlice) -> AccountState:
    if cell.load_bit():
        return AccountState("frozen", frozen_hash=cell.load_bytes(32))
    return AccountState("uninit")


def _read_state_init(cell: CellSlice) -> AccountState:
    fixed_prefix_length = cell.load_uint(5) if cell.load_bit() else None
    tick, tock = (cell.load_bit(), cell.load_bit()) if cell.load_bit() else (None, None)
    return AccountState(
        "active",
        fixed_prefix_length=fixed_prefix_length,
        special_tick=tick,
        special_tock=tock,
        code=cell.load_maybe_ref(),
        data=cell.load_maybe_ref(),
        library=cell.load_maybe_ref(),
    )


def _skip_address(cell: CellSlice) -> None:
    """Skip MsgAddressInt: addr_std$10 or addr_var$11, either with Maybe Anycast."""
    if not cell.load_bit():
        raise DecodeError("account: its address is not an internal address")
    is_var = cell.load_bit()
    if cell.load_bit():
        cell.skip(cell.load_uint(5))  # anycast_info$_ depth:(#<= 30) rewrite_pfx
    cell.skip(cell.load_uint(9) + 32 if is_var else 8 + 256)


def _check_end(cell: CellSlice) -> None:
    if cell.bits_left or cell.refs_left:
        raise DecodeError(
            f"account: {cell.bits_left} bits and {cell.refs_left} references are left over"
        )


def make_row(tree: CellTree, at: StateAt, touched: Touched, state: AccountState) -> AccountRow:
    """Return the row of ``account_states`` of an account after a block."""
    return (
        at.workchain,
        touched.account,
        at.mc_seqno,
        at.shard,
        at.block_seqno,
        at.utime,
        touched.new_hash,
        state.account_status,
        state.balance,
        _format_currencies(tree, state.extra_currencies),
        touched.last_trans_lt,
        touched.last_trans_hash,
        state.frozen_hash,
        _hash_of(tree, state.code),
        _hash_of(tree, state.data),
        _hash_of(tree, state.library),
        state.fixed_prefix_length,
        state.special_tick,
        state.special_tock,
        state.storage_cells,
        state.storage_bits,
        state.storage_last_paid,
        state.storage_due_payment,
        state.storage_last_trans_lt,
        _hash_of(tree, state.extra_currencies),
    )


def _hash_of(tree: CellTree, cell: int | None) -> bytes | None:
    """Return the hash of a part of the account in the state, pruned or not."""
    return None if cell is None else tree.hash(cell, 0)


def _format_currencies(tree: CellTree, root: int | None) -> str | None:
    """Return the extra currencies as JSON; None if there are none or part of them is pruned."""
    if root is None or any(tree.kind(cell) == PRUNED for cell, _ in iter_cells(tree, [(root, 0)])):
        return None
    return read_extra_currencies(tree, root)
