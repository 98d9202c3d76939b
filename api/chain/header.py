"""Finds block headers by position in the chain, and traces by transaction or message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tonlake.queries.reader import Reader

Row = dict[str, Any]

_MAX_SHARDS = 2_000
"""Upper bound of blocks with the same seqno, one per shard."""


def find_masterchain_ends(reader: Reader) -> Sequence[Mapping[str, Any]]:
    """Return the oldest and the newest masterchain block as rows of ``v3/blocks``."""
    first, last = max(1, reader.snapshot.first_mc_seqno), reader.snapshot.last_mc_seqno
    return reader.lasting(
        "masterchain ends",
        lambda: [row for seqno in sorted({first, last}) for row in _find_masters(reader, seqno)],
    )


def _find_masters(reader: Reader, seqno: int) -> list[Row]:
    """Return the masterchain block with ``seqno`` (its own ``mc_seqno``), or []."""
    return reader.rows("v3/blocks", workchain=MASTERCHAIN, mc_seqno=seqno, limit=1)


def find_block(reader: Reader, workchain: int, shards: Sequence[int], seqno: int) -> Row | None:
    """Return block ``seqno`` of the last of ``shards`` that has it, as a row of ``v3/blocks``."""
    if workchain == MASTERCHAIN:
        found = _find_masters(reader, seqno)
    else:
        found = reader.rows("v3/blocks", workchain=workchain, seqno=seqno, limit=_MAX_SHARDS)
    places = {shard: at for at, shard in enumerate(shards)}
    fitting = [row for row in found if row["shard"] in places]
    return max(fitting, key=lambda row: places[row["shard"]], default=None)


def find_first_block(
    reader: Reader,
    workchain: int,
    shards: Sequence[int],
    *,
    lt: int | None = None,
    utime: int | None = None,
) -> Row | None:
    """Return the first block in a line of shards at or after ``lt`` or ``utime``.

    Exactly one of both must be set.
    """
    place = reader.one(
        "v2/first_block", workchain=workchain, shards=list(shards), lt=lt, utime=utime
    )
    return place and reader.one("v3/blocks", **place, limit=1)


def list_block_keys(
    reader: Reader,
    blocks: Sequence[Row],
    limit: int,
    *,
    offset: int = 0,
    descending: bool = False,
) -> list[Row]:
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
