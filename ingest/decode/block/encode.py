"""Encodes rows to cells: a transaction row and its message rows as the node serializes them.

The inverse of ``transaction``, ``description``, ``phase`` and ``message``. Amounts take the fewest
bytes; an address is addr_std$10 without anycast, or addr_none$00. ``Bits`` are an integer and its
number of bits. The head of a cell is its d1, d2 and data (see module ``build``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.ingest.decode.cell.build import pack_head

if TYPE_CHECKING:
    from collections.abc import Sequence

Bits = tuple[int, int]

ORD, TICK_TOCK = "ord", "tick_tock"
NAMED = frozenset({ORD, TICK_TOCK})
"""Descriptions that can be encoded. All others contain another transaction, or are rare."""

_NOTHING = (0, 1)
_STATUSES = {"uninit": (0, 2), "frozen": (1, 2), "active": (2, 2), "nonexist": (3, 2)}
_CHANGES = {"unchanged": (0, 1), "frozen": (2, 2), "deleted": (3, 2)}
_SKIPS = {"no_state": (0, 3), "bad_state": (1, 3), "no_gas": (2, 3), "suspended": (6, 4)}
_BOUNCES = {"negfunds": (0, 2), "nofunds": (1, 2), "ok": (1, 1)}


def join_bits(*parts: Bits) -> Bits:
    """Concatenate bits."""
    value = size = 0
    for number, bits in parts:
        value = value << bits | number
        size += bits
    return value, size


def encode_root(columns: Sequence[Any]) -> bytes:
    """Return the head of transaction$0111 with three references, without extra currencies.

    ``columns`` are account, lt, prev_trans_hash, prev_trans_lt, now, orig_status, end_status,
    outmsg_cnt and total_fees.
    """
    account, lt, prev_hash, prev_lt, now, before, after, out_count, fees = columns
    lts = lt.to_bytes(8, "big"), prev_lt.to_bytes(8, "big")
    fixed = b"".join((account, lts[0], prev_hash, lts[1], now.to_bytes(4, "big")))
    return pack_head(
        3,
        *join_bits(
            (7, 4),
            (int.from_bytes(fixed, "big"), len(fixed) * 8),
            (out_count, 15),
            _STATUSES[before],
            _STATUSES[after],
            _grams(fees),
            _NOTHING,
        ),
    )


def encode_description(columns: Sequence[Any]) -> list[bytes]:
    """Return the heads of TransactionDescr and its children: compute and action phase.

    ``columns`` are those from ``descr``, one of ``NAMED``, to the last of split_info; the credit
    has no extra currencies.
    """
    descr, aborted, destroyed, credit_first, is_tock = columns[:5]
    storage, credit, compute = columns[6:9], columns[9:12], columns[12:27]
    action, bounce = columns[27:42], columns[42:48]
    below = []
    if not compute[0]:
        below.append(_encode_run(compute))
    if action[0] is not None:
        below.append(_encode_action(action))
    run = join_bits(_encode_compute(compute), (int(action[0] is not None), 1), (int(aborted), 1))
    if descr == TICK_TOCK:
        head = ((2 + is_tock, 4), _encode_storage(storage))
        bits = join_bits(*head, run, (int(destroyed), 1))
    else:
        bits = join_bits(
            (int(credit_first), 5),
            _NOTHING if storage[0] is None else join_bits((1, 1), _encode_storage(storage)),
            _encode_credit(credit),
            run,
            _encode_bounce(bounce),
            (int(destroyed), 1),
        )
    return [pack_head(len(below), *bits), *below]


def encode_info(columns: Sequence[Any], external: Bits | None) -> Bits | None:
    """Return CommonMsgInfo; None if the columns do not determine it.

    ``columns`` are those of a message from ``kind`` to ``import_fee``; ``external`` is the
    addr_extern that is the source of ext_in or the destination of ext_out.
    """
    kind, source_workchain, source, source_kind, to_workchain, to, to_kind, *rest = columns
    is_from, is_to = kind == "ext_in", kind == "ext_out"
    addresses = (
        _encode_address(source_kind, source_workchain, source, external if is_from else None),
        _encode_address(to_kind, to_workchain, to, external if is_to else None),
    )
    value, currencies, fwd_fee, ihr_fee, extra_flags, created_lt, created_at, *flags, fee = rest
    if None in addresses or currencies is not None or (is_from and fee is None):
        return None
    both = join_bits(*addresses)  # type: ignore[arg-type] # no None among them
    if is_from:
        return join_bits((2, 2), both, _grams(fee))
    created = (created_lt << 32 | created_at, 96)
    if is_to:
        return join_bits((3, 2), both, created)
    ihr_disabled, bounce, bounced = flags
    return join_bits(
        (ihr_disabled << 2 | bounce << 1 | bounced, 4),
        both,
        _grams(value),
        _NOTHING,
        _grams(ihr_fee if extra_flags is None else int(extra_flags)),
        _grams(fwd_fee),
        created,
    )


def _encode_address(
    kind: str, workchain: int | None, account: bytes | None, external: Bits | None
) -> Bits | None:
    """Return addr_std without anycast, addr_none or ``external``; None for any other."""
    if kind == "none":
        return 0, 2
    if kind == "extern":
        return external
    if kind != "std" or workchain is None or account is None:
        return None
    return (4 << 8 | workchain & 0xFF) << 256 | int.from_bytes(account, "big"), 267


def _encode_storage(columns: Sequence[Any]) -> Bits:
    collected, due, change = columns
    return join_bits(_grams(collected), _maybe_grams(due), _CHANGES[change])


def _encode_credit(columns: Sequence[Any]) -> Bits:
    """Return ``Maybe TrCreditPhase`` without extra currencies."""
    due, credit, _ = columns
    if credit is None:
        return _NOTHING
    return join_bits((1, 1), _maybe_grams(due), _grams(credit), _NOTHING)


def _encode_compute(columns: Sequence[Any]) -> Bits:
    """Return TrComputePhase without its child cell."""
    skipped, reason, success, state_used, activated, gas_fees = columns[:6]
    if skipped:
        return _SKIPS[reason]
    return join_bits((8 | success << 2 | state_used << 1 | activated, 4), _grams(gas_fees))


def _encode_run(columns: Sequence[Any]) -> bytes:
    """Return the cell of tr_phase_compute_vm, gas_used to vm_final_state_hash."""
    used, limit, credit, mode, exit_code, exit_arg, steps, first, last = columns[6:]
    bits = join_bits(
        _var_uint(used, 3),
        _var_uint(limit, 3),
        _NOTHING if credit is None else join_bits((1, 1), _var_uint(credit, 2)),
        (mode & 0xFF, 8),
        (exit_code & 0xFFFFFFFF, 32),
        _maybe_int32(exit_arg),
        (steps, 32),
        (int.from_bytes(first + last, "big"), 512),
    )
    return pack_head(0, *bits)


def _encode_action(columns: Sequence[Any]) -> bytes:
    success, valid, no_funds, change, fwd_fees, fees, code, arg, *counts = columns
    every, special, skipped, created, list_hash, size_cells, size_bits = counts
    numbers = ((every << 16 | special) << 16 | skipped) << 16 | created
    bits = join_bits(
        (success << 2 | valid << 1 | no_funds, 3),
        _CHANGES[change],
        _maybe_grams(fwd_fees),
        _maybe_grams(fees),
        (code & 0xFFFFFFFF, 32),
        _maybe_int32(arg),
        (numbers, 64),
        (int.from_bytes(list_hash, "big"), 256),
        _var_uint(size_cells, 3),
        _var_uint(size_bits, 3),
    )
    return pack_head(0, *bits)


def _encode_bounce(columns: Sequence[Any]) -> Bits:
    kind, size_cells, size_bits, missing, fees, fwd_fees = columns
    if kind is None:
        return _NOTHING
    tag = join_bits((1, 1), _BOUNCES[kind])
    if kind == "negfunds":
        return tag
    size = join_bits(tag, _var_uint(size_cells, 3), _var_uint(size_bits, 3))
    if kind == "nofunds":
        return join_bits(size, _grams(missing))
    return join_bits(size, _grams(fees), _grams(fwd_fees))


def _var_uint(value: int, length_bits: int) -> Bits:
    """Return VarUInteger in the fewest bytes."""
    count = (value.bit_length() + 7) // 8
    return count << count * 8 | value, length_bits + count * 8


def _grams(value: int) -> Bits:
    return _var_uint(value, 4)


def _maybe_grams(value: int | None) -> Bits:
    return _NOTHING if value is None else join_bits((1, 1), _var_uint(value, 4))


def _maybe_int32(value: int | None) -> Bits:
    return _NOTHING if value is None else (1 << 32 | value & 0xFFFFFFFF, 33)
