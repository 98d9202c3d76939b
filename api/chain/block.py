"""Finds blocks by seqno, logical time or Unix time, and the ranges that the lake knows."""

from collections.abc import Mapping, Sequence
from typing import Any

from tonlake.api.errors import LiteServerError, NotCovered
from tonlake.api.request.call import Call
from tonlake.api.text.encoding import name_ranges
from tonlake.lake.account import MASTERCHAIN
from tonlake.queries.reader import Reader

Row = Mapping[str, Any]

_MAX_SHARDS = 2_000
"""Upper bound of blocks with the same seqno, one per shard."""


def find_masters(reader: Reader, seqno: int) -> Sequence[Row]:
    """Return the masterchain block with ``seqno`` (its own ``mc_seqno``), or []."""
    return reader.rows("v3/blocks", workchain=MASTERCHAIN, mc_seqno=seqno, limit=1)


def find_block_row(reader: Reader, workchain: int, shards: Sequence[int], seqno: int) -> Row | None:
    """Return block ``seqno`` of the last of ``shards`` that has it, as a row of ``v3/blocks``."""
    found: Sequence[Row]
    if workchain == MASTERCHAIN:
        found = find_masters(reader, seqno)
    else:
        found = reader.rows("v3/blocks", workchain=workchain, seqno=seqno, limit=_MAX_SHARDS)
    places = {shard: at for at, shard in enumerate(shards)}
    fitting = [row for row in found if row["shard"] in places]
    return max(fitting, key=lambda row: places[row["shard"]], default=None)


def list_block_keys(
    reader: Reader, blocks: Sequence[Row], limit: int, *, offset: int = 0, descending: bool = False
) -> list[dict[str, Any]]:
    """Return a page of transaction keys of ``blocks``, from ``v3/transaction_keys_of_blocks``."""
    return reader.rows(
        "v3/transaction_keys_of_blocks",
        mc_seqnos=[row["mc_seqno"] for row in blocks],
        workchains=[row["workchain"] for row in blocks],
        shards=[row["shard"] for row in blocks],
        block_seqnos=[row["seqno"] for row in blocks],
        descending=descending,
        limit=limit,
        offset=offset,
    )


def find_trace_ids(
    reader: Reader, *, tx_hashes: Sequence[bytes] = (), msg_hashes: Sequence[bytes] = ()
) -> list[bytes]:
    """Return the distinct trace ids of transactions, or else of messages, in no order."""
    if tx_hashes:
        found = reader.rows("v3/trace_ids_of_transactions", hashes=list(tx_hashes))
    else:
        found = reader.rows("v3/trace_ids_of_messages", msg_hashes=list(msg_hashes))
    return [row["trace_id"] for row in found]


MASTERCHAIN_SHARD = -(1 << 63)
SEQNO_UNKNOWN = "LITE_SERVER_NOTREADY: seqno not in db"
BLOCK_UNKNOWN = "LITE_SERVER_NOTREADY: block not in db"
LT_UNKNOWN = "LITE_SERVER_NOTREADY: lt not in db"
UTIME_UNKNOWN = "LITE_SERVER_NOTREADY: ts not in db"
STATE_UNKNOWN = "LITE_SERVER_ERROR: state already gc'd"


def find_master(call: Call, seqno: int | None = None) -> Row:
    """Return the masterchain block with ``seqno``, by default the newest."""
    if seqno is not None:
        return find_block(call, MASTERCHAIN, MASTERCHAIN_SHARD, seqno)
    last = call.reader.snapshot.last_mc_seqno
    rows = call.reader.lasting(
        "newest masterchain block", lambda: [find_block(call, MASTERCHAIN, MASTERCHAIN_SHARD, last)]
    )
    return rows[0]


def find_master_at(reader: Reader, utime: int) -> Row | None:
    """Return the last masterchain block up to a time; None if the lake begins later."""
    place = {"workchain": MASTERCHAIN, "shard": MASTERCHAIN_SHARD}
    return reader.one("v3/blocks", **place, end_utime=utime, limit=1)


def find_block(call: Call, workchain: int, prefix: int, seqno: int) -> Row:
    """Return the block with ``seqno`` in the shard that contains an account prefix."""
    row = find_block_row(call.reader, workchain, list_ancestors(prefix), seqno)
    if row is None:
        raise LiteServerError(SEQNO_UNKNOWN)
    return row


def find_block_at(
    call: Call, workchain: int, prefix: int, *, lt: int | None = None, utime: int | None = None
) -> Row:
    """Return the first block of a line of shards that ends at or after ``lt``, or ``utime``."""
    shards = list_ancestors(prefix)
    place = call.reader.one(
        "v2/first_block", workchain=workchain, shards=shards, lt=lt, utime=utime
    )
    row = place and call.reader.one("v3/blocks", **place, limit=1)
    # Several blocks may share a second: a block of that second is not the first one by its time.
    holds_lt = row is not None and lt is not None and row["start_lt"] <= lt
    if row is None or not (holds_lt or _follows_known(call, row, prefix)):
        raise LiteServerError(UTIME_UNKNOWN if lt is None else LT_UNKNOWN)
    return row


def _follows_known(call: Call, row: Row, prefix: int) -> bool:
    """Return whether the previous block in the line of shards is known, or there is none."""
    shards = list_ancestors(prefix)
    before = "prev" if row["prev_shard"] in shards else "prev2"
    seqno = row[f"{before}_seqno"]
    if seqno == 0:
        return True
    return find_block_row(call.reader, row["workchain"], shards, seqno) is not None


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
    """Return whether an account that the lake, maybe a pruned one, lacks does not exist there."""
    snapshot = call.reader.snapshot
    return snapshot.has_every_account(mc_seqno) or _is_unbroken(
        call, snapshot.known_ranges[0], mc_seqno
    )


def find_range_start(call: Call, mc_seqno: int) -> int:
    """Return the first seqno of the gapless range of state changes that contains ``mc_seqno``."""
    known = call.reader.snapshot.known_ranges
    return max(first for first, _last in known if first <= mc_seqno)


def name_coverage(call: Call) -> str:
    """Return a text with the masterchain ranges in the lake."""
    return f"the lake covers masterchain {name_ranges(call.reader.snapshot.ranges)}"


def check_no_hole_after(call: Call, seqno: int, what: str) -> None:
    """Raise NotCovered if a hole follows the last known block up to ``what``, a time."""
    if any(seqno == last for _first, last in call.reader.snapshot.ranges[:-1]):
        raise NotCovered(f"{name_coverage(call)}, and {what} may lie in between")


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
