"""Sizes, in bits, of the cells of a transaction that are encoded from its rows.

Where columns were read from a cell, its size decides whether it is the cell that the columns
give (module ``encode``): every bit of it went into a column, in one way only, but amounts, which
may be longer than they must be, addresses with anycast and bits behind the last field. Each of
these makes the cell longer, and nothing makes it shorter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.decode.block.encode import Bits

_STD_BITS, _NONE_BITS = 267, 2
_CREATED_BITS = 64 + 32
_NOT_ENCODED = -10_000
"""What any other address makes the bits of a message, whatever else is in it: less than none."""


def size_root(fees: int) -> int:
    """Return the bits of transaction$0111; its fees have no extra currencies."""
    return 4 + 256 + 64 + 256 + 64 + 32 + 15 + 2 + 2 + _size_grams(fees) + 1


def size_description(columns: Sequence[Any]) -> int:
    """Return the bits of TransactionDescr without what it refers to."""
    if columns[0] == "ord":
        storage = 0 if columns[6] is None else _size_storage(*columns[6:9])
        due, credited = columns[9:11]
        credit = 1 if credited is None else 2 + _size_maybe_grams(due) + _size_grams(credited)
        size = 6 + storage + credit + _size_bounce(*columns[42:48])
    else:
        size = 4 + _size_storage(*columns[6:9])
    # Of the compute phase tag and flags; is there an action phase, aborted, destroyed.
    size += 4 + 3
    if not columns[12]:
        size += _size_grams(columns[17])
    elif columns[13] != "suspended":
        size -= 1
    return size


def size_info(columns: Sequence[Any], external: Bits | None) -> int | None:
    """Return the bits of CommonMsgInfo, or None where it does not follow from the columns.

    Arguments are those of ``encode.encode_info``.
    """
    kind, _, source, source_kind, _, to, to_kind, value, currencies, fwd_fee, ihr_fee = columns[:11]
    extra_flags, import_fee = columns[11], columns[17]
    size = _size_address(source_kind, source, external if kind == "ext_in" else None)
    size += _size_address(to_kind, to, external if kind == "ext_out" else None)
    if size < 0 or currencies is not None:
        return None
    if kind == "int":
        size += _size_grams(value) + 1 + _size_grams(fwd_fee) + _CREATED_BITS
        return 4 + size + _size_grams(ihr_fee if extra_flags is None else extra_flags)
    if kind == "ext_out":
        return 2 + size + _CREATED_BITS
    return None if import_fee is None else 2 + size + _size_grams(import_fee)


def _size_address(kind: str, account: bytes | None, external: Bits | None) -> int:
    """Return the bits of addr_std without anycast, addr_none or ``external``."""
    if kind == "std" and account is not None:
        return _STD_BITS
    if kind == "none":
        return _NONE_BITS
    return external[1] if kind == "extern" and external is not None else _NOT_ENCODED


def _size_storage(collected: int, due: int | None, change: str) -> int:
    return _size_grams(collected) + _size_maybe_grams(due) + _size_change(change)


def size_run(columns: Sequence[Any]) -> int:
    """Return the bits of the cell of tr_phase_compute_vm, from its columns gas_used onward."""
    used, limit, credit, _, _, arg = columns[:6]
    gas = _size_used(used, limit)
    gas += 1 if credit is None else 3 + (credit.bit_length() + 7 & ~7)
    return gas + 8 + 32 + (1 if arg is None else 33) + 32 + 512


def size_action(columns: Sequence[Any]) -> int:
    """Return the bits of the cell of TrActionPhase, from its columns."""
    fees = _size_maybe_grams(columns[4]) + _size_maybe_grams(columns[5])
    codes = 32 + (1 if columns[7] is None else 33)
    return 3 + _size_change(columns[3]) + fees + codes + 64 + 256 + _size_used(*columns[13:15])


def _size_bounce(
    kind: str | None,
    size_cells: int,
    size_bits: int,
    missing: int,
    fees: int,
    fwd_fees: int,
) -> int:
    if kind is None:
        return 1
    if kind == "negfunds":
        return 3
    size = 1 + _size_used(size_cells, size_bits)
    if kind == "nofunds":
        return size + 2 + _size_grams(missing)
    return size + 1 + _size_grams(fees) + _size_grams(fwd_fees)


def _size_change(change: str) -> int:
    return 1 if change == "unchanged" else 2


def _size_used(cells: int, bits: int) -> int:
    """Return the bits of StorageUsed: two VarUInteger 7."""
    return 6 + (cells.bit_length() + 7 & ~7) + (bits.bit_length() + 7 & ~7)


def _size_grams(value: int) -> int:
    return 4 + (value.bit_length() + 7 & ~7)


def _size_maybe_grams(value: int | None) -> int:
    return 1 if value is None else 5 + (value.bit_length() + 7 & ~7)
