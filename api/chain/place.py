"""Finds blocks by seqno, logical time or Unix time, and the ranges that the lake knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.chain import header
from tonlake.api.errors import LiteServerError
from tonlake.api.text import ranges
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.api.request.call import Call

    Row = Mapping[str, Any]

MASTERCHAIN_SHARD = -(1 << 63)
SEQNO_UNKNOWN = "LITE_SERVER_NOTREADY: seqno not in db"
BLOCK_UNKNOWN = "LITE_SERVER_NOTREADY: block not in db"
LT_UNKNOWN = "LITE_SERVER_NOTREADY: lt not in db"
UTIME_UNKNOWN = "LITE_SERVER_NOTREADY: ts not in db"
STATE_UNKNOWN = "LITE_SERVER_ERROR: state already gc'd"


def find_master(call: Call, seqno: int | None = None) -> Row:
    """Return the masterchain block with ``seqno``, by default the newest.

    Raises:
        LiteServerError: the block is not in the lake.
    """
    if seqno is not None:
        return find_block(call, MASTERCHAIN, MASTERCHAIN_SHARD, seqno)
    last = call.reader.snapshot.last_mc_seqno
    rows = call.reader.lasting(
        "newest masterchain block",
        lambda: [find_block(call, MASTERCHAIN, MASTERCHAIN_SHARD, last)],
    )
    return rows[0]


def find_block(call: Call, workchain: int, prefix: int, seqno: int) -> Row:
    """Return the block with ``seqno`` in the shard that contains an account prefix.

    Raises:
        LiteServerError: the block is not in the lake.
    """
    row = header.find_block(call.reader, workchain, list_ancestors(prefix), seqno)
    if row is None:
        raise LiteServerError(SEQNO_UNKNOWN)
    return row


def find_block_at_lt(call: Call, workchain: int, prefix: int, lt: int) -> Row:
    """Return the first block of a line of shards that ends at or after a logical time.

    Raises:
        LiteServerError: no block qualifies, or the lake cannot know which is the first.
    """
    row = header.find_first_block(call.reader, workchain, list_ancestors(prefix), lt=lt)
    if row is None or not (row["start_lt"] < lt or _follows_known(call, row, prefix)):
        raise LiteServerError(LT_UNKNOWN)
    return row


def find_block_at_utime(call: Call, workchain: int, prefix: int, utime: int) -> Row:
    """Return the first block of a line of shards with a time at or after ``utime``.

    Raises:
        LiteServerError: no block qualifies, or the lake cannot know which is the first.
    """
    row = header.find_first_block(call.reader, workchain, list_ancestors(prefix), utime=utime)
    # Several blocks may share a second: a block of that second is not the first one by its time.
    if row is None or not _follows_known(call, row, prefix):
        raise LiteServerError(UTIME_UNKNOWN)
    return row


def _follows_known(call: Call, row: Row, prefix: int) -> bool:
    """Return whether the previous block in the line of shards is known, or there is none."""
    shards = list_ancestors(prefix)
    before = "prev" if row["prev_shard"] in shards else "prev2"
    seqno = row[f"{before}_seqno"]
    if seqno == 0:
        return True
    return header.find_block(call.reader, row["workchain"], shards, seqno) is not None


def find_configuration_seqno(master: Row) -> int:
    """Return the seqno of the key block whose configuration is valid after a masterchain block."""
    seqno: int = master["seqno"] if master["key_block"] else master["prev_key_block_seqno"]
    return seqno


def begins_at_zero_state(call: Call, mc_seqno: int) -> bool:
    """Return whether the lake has all blocks from the zero state to a masterchain block."""
    return _is_unbroken(call, call.reader.snapshot.ranges[0], mc_seqno)


def _is_unbroken(call: Call, oldest: tuple[int, int], mc_seqno: int) -> bool:
    """Return whether the range ``oldest`` reaches from the zero state to a masterchain block."""
    first, last = oldest
    return (
        first <= 1
        and mc_seqno <= last
        and bool(call.reader.lasting_rows("v2/config_params", mc_seqno=0))
    )


def knows_every_account(call: Call, mc_seqno: int) -> bool:
    """Return whether an account without a state in the lake does not exist at ``mc_seqno``.

    This can hold for a pruned lake, too, although it no longer has all blocks.
    """
    snapshot = call.reader.snapshot
    return snapshot.has_every_account(mc_seqno) or _is_unbroken(
        call, snapshot.known_ranges[0], mc_seqno
    )


def find_range_start(call: Call, mc_seqno: int) -> int:
    """Return the first seqno of the gapless range of state changes that contains ``mc_seqno``."""
    known = call.reader.snapshot.known_ranges
    return max(first for first, _last in known if first <= mc_seqno)


def name_ranges(call: Call) -> str:
    """Return a text with the masterchain ranges in the lake."""
    return f"the lake covers masterchain {ranges.name_ranges(call.reader.snapshot.ranges)}"


def list_ancestors(shard: int) -> list[int]:
    """Return the signed ids of all shards that contain the account prefix ``shard``.

    A shard id is the bits of its prefix, a one, then zeros; the node splits to at most 60 bits.
    """
    prefix = shard & 0xFFFF_FFFF_FFFF_FFFF
    found = []
    for bits in range(61):
        tail = 64 - bits
        number = prefix >> tail << tail | 1 << tail - 1
        found.append(number - (1 << 64) if number >> 63 else number)
    return found
