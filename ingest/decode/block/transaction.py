"""Decodes transaction cells to rows of ``transactions`` and ``messages``.

TL-B: transaction$0111, HASH_UPDATE, the seven constructors of TransactionDescr, tr_phase_storage,
tr_phase_credit, tr_phase_compute_*, tr_phase_action, tr_phase_bounce_*, split_merge_info. Each
phase is read as its columns of ``transactions``. For positions in cells see module ``message``.
"""

from datetime import UTC, datetime
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

from tonlake.ingest.decode.block.message import (
    EXTRA_FLAGS_VERSION,
    MessageDecoder,
    read_extra_currencies,
    read_grams,
    read_maybe_grams,
    read_var_uint,
    sign_int32,
)
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.tree import CellTree, read_bits
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.decode.rows import Row
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.lake.schema import MESSAGES, TRANSACTIONS

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
    exit_code, exit_arg, left = _read_code(value, left)
    left -= _COMPUTE_TAIL_BITS
    tail = (value >> left & _COMPUTE_TAIL_MASK).to_bytes(_COMPUTE_TAIL.size, "big")
    mode -= mode >> 7 << 8
    return (gas_used, gas_limit, gas_credit, mode, exit_code, exit_arg, *_COMPUTE_TAIL.unpack(tail))


def _read_code(value: int, left: int) -> tuple[int, int | None, int]:
    """Read an exit or result code, its optional argument, and return the new position, too."""
    left -= 33
    code = sign_int32(value >> left + 1 & 0xFFFFFFFF)
    if not value >> left & 1:
        return code, None, left
    left -= 32
    return code, sign_int32(value >> left & 0xFFFFFFFF), left


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
    result_code, result_arg, left = _read_code(value, left)
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


_DESCRIPTIONS = (
    *("ord", "storage", "tick_tock", "tick_tock"),
    *("split_prepare", "split_install", "merge_prepare", "merge_install"),
)
"""Constructors of TransactionDescr by the first four bits; the last bit of tick_tock is is_tock."""

_COMPUTING = frozenset(("ord", "tick_tock", "split_prepare", "merge_install"))
_OPTIONAL_STORAGE = frozenset(("ord", "split_prepare", "merge_install"))
_FIRST_SPLIT, _TOCK = 4, 3


def read_description(tree: CellTree, cell: int) -> Phase:
    """Read TransactionDescr; return the columns ``descr`` to the last of split_info."""
    value, bits = tree.bits(cell)
    left = bits - 4
    tag = value >> left
    if tag >= len(_DESCRIPTIONS):
        raise DecodeError(f"description of unknown kind {tag:04b}")
    kind, credit_first = _DESCRIPTIONS[tag], None
    storage, credit, split = NO_STORAGE, NO_CREDIT, NO_SPLIT
    ref = int(kind == "merge_install")  # its first reference is the prepare transaction
    if kind == "ord":
        left -= 1
        credit_first = value >> left & 1 == 1
    if tag >= _FIRST_SPLIT:
        split, left = read_split(value, left)
    if kind in _OPTIONAL_STORAGE:
        storage, left = read_maybe_storage(value, left)
    elif kind != "split_install":
        storage, left = read_storage(value, left)
    if kind in ("ord", "merge_install"):
        credit, ref, left = read_maybe_credit(tree, tree.links[cell], ref, value, left)
    run, aborted, destroyed, installed = _read_outcome(tree, cell, kind, ref, value, left)
    is_tock = tag == _TOCK if kind == "tick_tock" else None
    flags = (kind, aborted, destroyed, credit_first, is_tock, installed)
    return (*flags, *storage, *credit, *run, *split)


def _read_outcome(
    tree: CellTree, cell: int, kind: str, ref: int, value: int, left: int
) -> tuple[Phase, bool | None, bool | None, bool | None]:
    """Return compute, action and bounce phases, and whether aborted, destroyed and installed."""
    children, bounce = tree.links[cell], NO_BOUNCE
    if kind not in _COMPUTING:
        run = (*NO_COMPUTE, *NO_ACTION, *NO_BOUNCE)
        if kind == "storage":
            return run, None, None, None
        last = value >> (left - 1) & 1 == 1
        if kind == "merge_prepare":
            return run, last, None, None
        _ = children[0]  # the prepare transaction
        return run, None, None, last
    compute, ref, left = read_compute(tree, children, ref, value, left)
    action, ref, left = read_maybe_action(tree, children, ref, value, left)
    left -= 1
    aborted = value >> left & 1 == 1
    if kind == "ord":
        bounce, left = read_maybe_bounce(value, left)
    return (*compute, *action, *bounce), aborted, value >> (left - 1) & 1 == 1, None


_HEAD = Struct(">32sQ32sQI")
_HEAD_BITS = _HEAD.size * 8
_HEAD_MASK = (1 << _HEAD_BITS) - 1
_TRANSACTION_TAG = 7
_STATUSES = ("uninit", "frozen", "active", "nonexist")
_OUT_KEY_BITS = 15
_HASH_UPDATE_HEAD = bytes((0, 130, 0x72))
_HASH_UPDATE_BYTES = 2 + 65
_MICROSECONDS = 1_000_000

_ASSUMED_SINCE = 1_767_225_600
"""2026-01-01: from then on global version 12 is assumed for a transaction without its block.

Recorded responses of the public service have the old form until October 2025 and the new one in
April 2026.
"""


class BlockPlace(NamedTuple):
    """The block of a transaction, and the masterchain block that commits it."""

    workchain: int | None
    shard: int | None
    block_seqno: int | None
    mc_seqno: int | None


class Decoded(NamedTuple):
    """The rows of one transaction, in schema order, and the values that link it to its account."""

    row: Row
    messages: list[Row]
    account: bytes
    lt: int
    hash: bytes
    state_hash: bytes


NOWHERE = BlockPlace(None, None, None, None)


class TransactionDecoder:
    """Decodes the transactions of one tree."""

    def __init__(self, tree: CellTree, place: BlockPlace, global_version: int | None) -> None:
        self._tree = tree
        self._place = place
        self._messages = MessageDecoder(tree, global_version)
        self._descriptions: dict[int, Phase] = {}

    def decode(self, cell: int) -> Decoded:
        """Decode one transaction with its messages."""
        try:
            return self._decode(cell)
        except (BocError, DecodeError) as error:
            raise DecodeError(f"transaction {self._tree.hash(cell).hex()}: {error}") from error
        except (ValueError, IndexError) as error:
            name = self._tree.hash(cell).hex()
            raise DecodeError(f"transaction {name}: one of its cells ends too early") from error

    def _decode(self, cell: int) -> Decoded:
        tree = self._tree
        if tree.level_mask(cell):
            raise DecodeError("parts of it are pruned")
        value, left = tree.bits(cell)
        children = tree.links[cell]
        left -= _HEAD_BITS + 4
        head = value >> left
        if head >> _HEAD_BITS != _TRANSACTION_TAG:
            raise DecodeError("the cell is not a transaction: its tag is not 0111")
        account, lt, prev_hash, prev_lt, now = _HEAD.unpack(
            (head & _HEAD_MASK).to_bytes(_HEAD.size, "big")
        )
        left -= 19
        counts = value >> left
        out_count = counts >> 4 & 0x7FFF
        statuses = _STATUSES[counts >> 2 & 3], _STATUSES[counts & 3]
        total_fees, left = read_grams(value, left)
        left -= 1
        currencies = read_extra_currencies(tree, children[1]) if value >> left & 1 else None
        state_cell, descr_cell = children[1:3] if currencies is None else children[2:4]
        state_before, state_after = _read_hash_update(tree, state_cell)
        tx_hash = tree.hash(cell)
        place = self._place
        found = _find_messages(tree, children[0], out_count)
        has_in = len(found) > out_count
        decode = self._messages.decode
        context = (place.workchain, account, lt, tx_hash, place.mc_seqno, now)
        messages = [(*context, "in", 0, *decode(message)) for message in found[:has_in]]
        for index, message in enumerate(found[has_in:]):
            messages.append((*context, "out", index, *decode(message)))
        row = (
            place.workchain,
            account,
            lt,
            tx_hash,
            place.shard,
            place.block_seqno,
            place.mc_seqno,
            now,
            now * _MICROSECONDS,
            prev_hash,
            prev_lt,
            *statuses,
            out_count,
            tree.hash(found[0]) if has_in else None,
            total_fees,
            currencies,
            state_before,
            state_after,
            *self._describe(descr_cell),
            serialize_boc(tree, (cell,)),
        )
        return Decoded(row, messages, account, lt, tx_hash, state_after)

    def _describe(self, cell: int) -> Phase:
        """Return the columns of a description; transactions with the same outcome share one."""
        known = self._descriptions.get(cell)
        if known is None:
            known = self._descriptions[cell] = read_description(self._tree, cell)
        return known


def decode_transaction(
    data: bytes, *, global_version: int | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Decode one transaction BOC to its row and the rows of its messages, as dicts by column.

    Columns known only from the block (workchain, shard, block_seqno, mc_seqno) are None. Without
    ``global_version`` that of mainnet at the time of the transaction is assumed, as far as it
    decides between ihr_fee and extra_flags. Raises BocError if ``data`` is not a bag of cells,
    DecodeError if it does not contain exactly one transaction.
    """
    tree = parse_boc(data)
    if len(tree.roots) != 1:
        raise DecodeError(f"a bag of {len(tree.roots)} roots is not a transaction")
    decoded = TransactionDecoder(tree, NOWHERE, global_version).decode(tree.roots[0])
    row = dict(zip(TRANSACTIONS.names, decoded.row, strict=True))
    if global_version is None and row["now"] >= _ASSUMED_SINCE:
        return decode_transaction(data, global_version=EXTRA_FLAGS_VERSION)
    row["time"] = datetime.fromtimestamp(row["now"], UTC).replace(tzinfo=None)
    return row, [dict(zip(MESSAGES.names, message, strict=True)) for message in decoded.messages]


def _find_messages(tree: CellTree, cell: int, out_count: int) -> list[int]:
    """Read ``^[in_msg:(Maybe ^Message) out_msgs:(HashmapE 15 ^Message)]``."""
    value, left = tree.bits(cell)
    children = tree.links[cell]
    flags = value >> (left - 2)
    found = [children[0]] if flags & 2 else []
    count = 0
    if flags & 1:
        for index, leaf in iter_hashmap(tree, children[flags >> 1 & 1], _OUT_KEY_BITS):
            if index != count:
                break
            count += 1
            found.append(leaf.load_ref())
    if count != out_count:
        raise DecodeError(f"{out_count} out messages declared, but another number found")
    return found


def _read_hash_update(tree: CellTree, cell: int) -> tuple[bytes, bytes]:
    """Read HASH_UPDATE: update_hashes#72 old_hash:bits256 new_hash:bits256."""
    head = tree.cells[cell]
    if head[:3] != _HASH_UPDATE_HEAD or len(head) != _HASH_UPDATE_BYTES:
        raise DecodeError("its state update is not a HASH_UPDATE")
    return head[3:35], head[35:67]
