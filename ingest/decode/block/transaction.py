"""Decodes transaction cells to rows of ``transactions`` and ``messages``.

TL-B: transaction$0111, HASH_UPDATE. For positions in cells see module ``currency``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.ingest.decode.block.currency import read_extra_currencies, read_grams
from tonlake.ingest.decode.block.description import read_description
from tonlake.ingest.decode.block.message import EXTRA_FLAGS_VERSION, MessageDecoder
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.lake.schema import MESSAGES, TRANSACTIONS

if TYPE_CHECKING:
    from tonlake.ingest.decode.block.phase import Phase
    from tonlake.ingest.decode.cell.tree import CellTree
    from tonlake.ingest.decode.rows import Row

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
        """Prepare for the transactions of the block at ``place``."""
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
    decides between ihr_fee and extra_flags.

    Raises:
        BocError: ``data`` is not a bag of cells.
        DecodeError: it does not contain exactly one transaction.
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
    """Read ``^[in_msg:(Maybe ^Message) out_msgs:(HashmapE 15 ^Message)]``.

    Return the in message, if any, and ``out_count`` out messages.
    """
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
