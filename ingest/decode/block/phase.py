"""Reads the phases of a transaction, each as its columns of ``transactions``.

TL-B: tr_phase_storage, tr_phase_credit, tr_phase_compute_*, tr_phase_action, tr_phase_bounce_*,
split_merge_info. For positions in cells see module ``currency``.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any

from tonlake.ingest.decode.block.currency import (
    read_extra_currencies,
    read_grams,
    read_maybe_grams,
    read_var_uint,
    sign_int32,
)
from tonlake.ingest.decode.cell.tree import read_bits
from tonlake.ingest.errors import DecodeError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.tree import CellTree

Phase = tuple[Any, ...]

NO_STORAGE: Phase = (None,) * 3
NO_CREDIT: Phase = (None,) * 3
NO_COMPUTE: Phase = (None,) * 15
NO_ACTION: Phase = (None,) * 15
NO_BOUNCE: Phase = (None,) * 6
NO_SPLIT: Phase = (None,) * 4

_SKIP_REASONS = ("no_state", "bad_state", "no_gas")
_SUSPENDED = 3
_COMPUTE_TAIL = Struct(">I32s32s")
_COMPUTE_TAIL_BITS = _COMPUTE_TAIL.size * 8
_COMPUTE_TAIL_MASK = (1 << _COMPUTE_TAIL_BITS) - 1
_ACTION_COUNTS = Struct(">4H32s")
_ACTION_COUNTS_BITS = _ACTION_COUNTS.size * 8
_ACTION_COUNTS_MASK = (1 << _ACTION_COUNTS_BITS) - 1
_KEPT_PHASES = 1024
"""Phases kept in caches: contracts with the same code behave alike, and in large blocks at least
half of these phase cells are equal to others."""
_SPLIT_BITS = 6 + 6 + 256 + 256
_MASK_512 = (1 << 512) - 1


def read_status_change(value: int, left: int) -> tuple[str, int]:
    """Read AccStatusChange: 0 unchanged, 10 frozen, 11 deleted."""
    left -= 1
    if not value >> left & 1:
        return "unchanged", left
    left -= 1
    return "deleted" if value >> left & 1 else "frozen", left


def read_storage(value: int, left: int) -> tuple[Phase, int]:
    """Read TrStoragePhase."""
    collected, left = read_grams(value, left)
    due, left = read_maybe_grams(value, left)
    change, left = read_status_change(value, left)
    return (collected, due, change), left


def read_maybe_storage(value: int, left: int) -> tuple[Phase, int]:
    """Read ``Maybe TrStoragePhase``."""
    left -= 1
    return read_storage(value, left) if value >> left & 1 else (NO_STORAGE, left)


def read_maybe_credit(
    tree: CellTree, children: tuple[int, ...], ref: int, value: int, left: int
) -> tuple[Phase, int, int]:
    """Read ``Maybe TrCreditPhase``; return the columns, the next reference and the position."""
    left -= 1
    if not value >> left & 1:
        return NO_CREDIT, ref, left
    due, left = read_maybe_grams(value, left)
    credit, left = read_grams(value, left)
    left -= 1
    if value >> left & 1:
        return (due, credit, read_extra_currencies(tree, children[ref])), ref + 1, left
    return (due, credit, None), ref, left


def read_compute(
    tree: CellTree, children: tuple[int, ...], ref: int, value: int, left: int
) -> tuple[Phase, int, int]:
    """Read TrComputePhase; return the columns, the next reference and the position."""
    left -= 1
    if not value >> left & 1:
        left -= 2
        reason = value >> left & 3
        if reason != _SUSPENDED:
            return (True, _SKIP_REASONS[reason], *NO_COMPUTE[2:]), ref, left
        left -= 1
        if value >> left & 1:
            raise DecodeError("compute phase skipped for a reason unknown to TL-B")
        return (True, "suspended", *NO_COMPUTE[2:]), ref, left
    left -= 3
    flags = value >> left
    gas_fees, left = read_grams(value, left)
    run = read_run(tree.cells[children[ref]])
    success, state_used, activated = bool(flags & 4), bool(flags & 2), bool(flags & 1)
    return (False, None, success, state_used, activated, gas_fees, *run), ref + 1, left


@lru_cache(maxsize=_KEPT_PHASES)
def read_run(cell: bytes) -> Phase:
    """Read the child cell of tr_phase_compute_vm, gas_used to vm_final_state_hash."""
    value, left = read_bits(cell)
    gas_used, left = read_var_uint(value, left, 3)
    gas_limit, left = read_var_uint(value, left, 3)
    gas_credit = None
    left -= 1
    if value >> left & 1:
        gas_credit, left = read_var_uint(value, left, 2)
    left -= 8
    mode = value >> left & 0xFF
    left -= 32
    exit_code = sign_int32(value >> left & 0xFFFFFFFF)
    exit_arg = None
    left -= 1
    if value >> left & 1:
        left -= 32
        exit_arg = sign_int32(value >> left & 0xFFFFFFFF)
    left -= _COMPUTE_TAIL_BITS
    tail = (value >> left & _COMPUTE_TAIL_MASK).to_bytes(_COMPUTE_TAIL.size, "big")
    mode -= mode >> 7 << 8
    return (
        gas_used,
        gas_limit,
        gas_credit,
        mode,
        exit_code,
        exit_arg,
        *_COMPUTE_TAIL.unpack(tail),
    )


def read_maybe_action(
    tree: CellTree, children: tuple[int, ...], ref: int, value: int, left: int
) -> tuple[Phase, int, int]:
    """Read ``Maybe ^TrActionPhase``; return the columns, the next reference and the position."""
    left -= 1
    if value >> left & 1:
        return read_action(tree.cells[children[ref]]), ref + 1, left
    return NO_ACTION, ref, left


@lru_cache(maxsize=_KEPT_PHASES)
def read_action(cell: bytes) -> Phase:
    """Read TrActionPhase."""
    value, left = read_bits(cell)
    left -= 3
    flags = value >> left
    change, left = read_status_change(value, left)
    fwd_fees, left = read_maybe_grams(value, left)
    action_fees, left = read_maybe_grams(value, left)
    left -= 32
    result_code = sign_int32(value >> left & 0xFFFFFFFF)
    result_arg = None
    left -= 1
    if value >> left & 1:
        left -= 32
        result_arg = sign_int32(value >> left & 0xFFFFFFFF)
    left -= _ACTION_COUNTS_BITS
    counts = (value >> left & _ACTION_COUNTS_MASK).to_bytes(_ACTION_COUNTS.size, "big")
    size_cells, left = read_var_uint(value, left, 3)
    size_bits, left = read_var_uint(value, left, 3)
    return (
        bool(flags & 4),
        bool(flags & 2),
        bool(flags & 1),
        change,
        fwd_fees,
        action_fees,
        result_code,
        result_arg,
        *_ACTION_COUNTS.unpack(counts),
        size_cells,
        size_bits,
    )


def read_maybe_bounce(value: int, left: int) -> tuple[Phase, int]:
    """Read ``Maybe TrBouncePhase``: 00 negfunds, 01 nofunds, 1 ok."""
    left -= 1
    if not value >> left & 1:
        return NO_BOUNCE, left
    left -= 1
    is_ok = value >> left & 1
    if not is_ok:
        left -= 1
        if not value >> left & 1:
            return ("negfunds", *NO_BOUNCE[1:]), left
    size_cells, left = read_var_uint(value, left, 3)
    size_bits, left = read_var_uint(value, left, 3)
    fees, left = read_grams(value, left)
    if not is_ok:
        return ("nofunds", size_cells, size_bits, fees, None, None), left
    fwd_fees, left = read_grams(value, left)
    return ("ok", size_cells, size_bits, None, fees, fwd_fees), left


def read_split(value: int, left: int) -> tuple[Phase, int]:
    """Read SplitMergeInfo."""
    left -= _SPLIT_BITS
    number = value >> left
    addresses = (number & _MASK_512).to_bytes(64, "big")
    pfx_len, depth = number >> 518 & 63, number >> 512 & 63
    return (pfx_len, depth, addresses[:32], addresses[32:]), left
