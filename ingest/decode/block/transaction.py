"""Decodes transaction cells to rows of ``transactions`` and ``messages``.

TL-B: transaction$0111, HASH_UPDATE, the seven constructors of TransactionDescr, tr_phase_storage,
tr_phase_credit, tr_phase_compute_*, tr_phase_action, tr_phase_bounce_*, split_merge_info. Each
phase is read as its columns of ``transactions``.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tonlake.ingest.decode.block.message import (
    EXTRA_FLAGS_VERSION,
    MessageDecoder,
    load_extra_currencies,
)
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.decode.rows import Row
from tonlake.ingest.errors import BocError, CellUnderflow, DecodeError
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


def _load_maybe(cell: CellSlice, read: Callable[[CellSlice], Phase], absent: Phase) -> Phase:
    return read(cell) if cell.load_bit() else absent


def _load_maybe_coins(cell: CellSlice) -> int | None:
    return cell.load_coins() if cell.load_bit() else None


def _read_status_change(cell: CellSlice) -> str:
    """Read AccStatusChange: 0 unchanged, 10 frozen, 11 deleted."""
    if not cell.load_bit():
        return "unchanged"
    return "deleted" if cell.load_bit() else "frozen"


def _read_storage(cell: CellSlice) -> Phase:
    """Read TrStoragePhase."""
    return cell.load_coins(), _load_maybe_coins(cell), _read_status_change(cell)


def _read_credit(cell: CellSlice) -> Phase:
    """Read TrCreditPhase."""
    return _load_maybe_coins(cell), cell.load_coins(), load_extra_currencies(cell)


def _read_compute(cell: CellSlice) -> Phase:
    """Read TrComputePhase."""
    if not cell.load_bit():
        reason = cell.load_uint(2)
        if reason != _SUSPENDED:
            return (True, _SKIP_REASONS[reason], *NO_COMPUTE[2:])
        if cell.load_bit():
            raise DecodeError("compute phase skipped for a reason unknown to TL-B")
        return (True, "suspended", *NO_COMPUTE[2:])
    flags = [cell.load_bit() for _ in ("success", "state_used", "activated")]
    gas_fees, run = cell.load_coins(), cell.tree.slice(cell.load_ref())
    gas_used, gas_limit = run.load_var_uint(3), run.load_var_uint(3)
    gas_credit = run.load_var_uint(2) if run.load_bit() else None
    ended = (run.load_int(8), *_read_code(run), run.load_uint(32))
    hashes = run.load_bytes(32), run.load_bytes(32)
    return (False, None, *flags, gas_fees, gas_used, gas_limit, gas_credit, *ended, *hashes)


def _read_code(cell: CellSlice) -> tuple[int, int | None]:
    """Read an exit or result code, and its optional argument."""
    return cell.load_int(32), cell.load_int(32) if cell.load_bit() else None


def _read_action(cell: CellSlice) -> Phase:
    """Read ``^TrActionPhase``."""
    phase = cell.tree.slice(cell.load_ref())
    flags = [phase.load_bit() for _ in ("success", "valid", "no_funds")]
    change, fees = _read_status_change(phase), [_load_maybe_coins(phase) for _ in range(2)]
    code, counts = _read_code(phase), [phase.load_uint(16) for _ in range(4)]
    list_hash = phase.load_bytes(32)
    return (*flags, change, *fees, *code, *counts, list_hash, *_read_size(phase))


def _read_size(cell: CellSlice) -> tuple[int, int]:
    """Read StorageUsed: numbers of cells and of bits."""
    return cell.load_var_uint(3), cell.load_var_uint(3)


def _read_bounce(cell: CellSlice) -> Phase:
    """Read TrBouncePhase: 00 negfunds, 01 nofunds, 1 ok."""
    if cell.load_bit():
        size, fees = _read_size(cell), cell.load_coins()
        return ("ok", *size, None, fees, cell.load_coins())
    if cell.load_bit():
        return ("nofunds", *_read_size(cell), cell.load_coins(), None, None)
    return ("negfunds", *NO_BOUNCE[1:])


def _read_split(cell: CellSlice) -> Phase:
    """Read SplitMergeInfo."""
    return cell.load_uint(6), cell.load_uint(6), cell.load_bytes(32), cell.load_bytes(32)


_DESCRIPTIONS = (
    *("ord", "storage", "tick_tock", "tick_tock"),
    *("split_prepare", "split_install", "merge_prepare", "merge_install"),
)
"""Constructors of TransactionDescr by the first four bits; the last bit of tick_tock is is_tock."""

_COMPUTING = frozenset(("ord", "tick_tock", "split_prepare", "merge_install"))
_OPTIONAL_STORAGE = frozenset(("ord", "split_prepare", "merge_install"))
_FIRST_SPLIT, _TOCK = 4, 3


def _read_description(tree: CellTree, root: int) -> Phase:
    """Read TransactionDescr; return the columns ``descr`` to the last of split_info."""
    cell = tree.slice(root)
    tag = cell.load_uint(4)
    if tag >= len(_DESCRIPTIONS):
        raise DecodeError(f"description of unknown kind {tag:04b}")
    kind, storage, credit = _DESCRIPTIONS[tag], NO_STORAGE, NO_CREDIT
    credit_first = cell.load_bit() if kind == "ord" else None
    split = _read_split(cell) if tag >= _FIRST_SPLIT else NO_SPLIT
    if kind.endswith("_install"):
        cell.load_ref()  # the prepare transaction
    if kind in _OPTIONAL_STORAGE:
        storage = _load_maybe(cell, _read_storage, NO_STORAGE)
    elif kind != "split_install":
        storage = _read_storage(cell)
    if kind in ("ord", "merge_install"):
        credit = _load_maybe(cell, _read_credit, NO_CREDIT)
    compute, action, bounce = NO_COMPUTE, NO_ACTION, NO_BOUNCE
    aborted = destroyed = installed = None
    if kind in _COMPUTING:
        compute = _read_compute(cell)
        action = _load_maybe(cell, _read_action, NO_ACTION)
        aborted = cell.load_bit()
        if kind == "ord":
            bounce = _load_maybe(cell, _read_bounce, NO_BOUNCE)
        destroyed = cell.load_bit()
    elif kind == "merge_prepare":
        aborted = cell.load_bit()
    elif kind == "split_install":
        installed = cell.load_bit()
    is_tock = tag == _TOCK if kind == "tick_tock" else None
    flags = (kind, aborted, destroyed, credit_first, is_tock, installed)
    return (*flags, *storage, *credit, *compute, *action, *bounce, *split)


_TRANSACTION_TAG = 7
_STATUSES = ("uninit", "frozen", "active", "nonexist")
_OUT_KEY_BITS = 15
_HASH_UPDATE_HEAD = bytes((0, 130, 0x72))
_HASH_UPDATE_BYTES = 2 + 65
_MICROSECONDS = 1_000_000

_ASSUMED_SINCE = 1_762_992_000
"""2025-11-13, when the main network took up global version 12: it is assumed from then on for a
transaction without its block."""


class BlockPlace(NamedTuple):
    """The block of a transaction, and the masterchain block that commits it."""

    workchain: int | None
    shard: int | None
    block_seqno: int | None
    mc_seqno: int | None


class DecodedTransaction(NamedTuple):
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

    def decode(self, cell: int) -> DecodedTransaction:
        """Decode one transaction with its messages."""
        try:
            return self._decode(cell)
        except (BocError, DecodeError) as error:
            is_short = isinstance(error, CellUnderflow)
            reason = "one of its cells ends too early" if is_short else str(error)
            raise DecodeError(f"transaction {self._tree.hash(cell).hex()}: {reason}") from error

    def _decode(self, cell: int) -> DecodedTransaction:
        tree = self._tree
        if tree.level_mask(cell):
            raise DecodeError("parts of it are pruned")
        start = tree.slice(cell)
        if start.load_uint(4) != _TRANSACTION_TAG:
            raise DecodeError("the cell is not a transaction: its tag is not 0111")
        account, lt = start.load_bytes(32), start.load_uint(64)
        prev_hash, prev_lt, now = start.load_bytes(32), start.load_uint(64), start.load_uint(32)
        out_count = start.load_uint(15)
        statuses = [_STATUSES[start.load_uint(2)] for _ in ("orig", "end")]
        found = _find_messages(tree, start.load_ref(), out_count)
        total_fees, currencies = start.load_coins(), load_extra_currencies(start)
        state_before, state_after = _read_hash_update(tree, start.load_ref())
        description = _read_description(tree, start.load_ref())
        tx_hash = tree.hash(cell)
        place = self._place
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
            *description,
            serialize_boc(tree, (cell,)),
        )
        return DecodedTransaction(row, messages, account, lt, tx_hash, state_after)


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
    start = tree.slice(cell)
    received, root = start.load_maybe_ref(), start.load_maybe_ref()
    found = [] if received is None else [received]
    count = 0
    for index, leaf in () if root is None else iter_hashmap(tree, root, _OUT_KEY_BITS):
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
