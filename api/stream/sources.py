"""Rows of a few blocks that transactions are written from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.lake import schema
from tonlake.lake.schema.transaction import ACCOUNT_STATES

if TYPE_CHECKING:
    from tonlake.api.stream.commits import Chunk, CommitRows

Row = dict[str, Any]


class Sources(NamedTuple):
    """What transactions are written from, by their hashes; states by account and hash."""

    rows: dict[bytes, Row]
    messages: dict[bytes, list[Row]]
    states: dict[tuple[int, bytes, bytes], Row]


def read_sources(reader: CommitRows, chunk: Chunk) -> Sources:
    """Return what the transactions of some blocks are written from.

    Raises:
        LakeCorrupt: a file or the log is damaged.
    """
    rows = {row["hash"]: row for row in reader.read(chunk, schema.TRANSACTIONS.name)}
    messages: dict[bytes, list[Row]] = {tx_hash: [] for tx_hash in rows}
    for message in reader.read(chunk, schema.MESSAGES.name):
        messages[message["tx_hash"]].append(message)
    states = {
        (row["workchain"], row["account"], row["hash"]): row
        for row in reader.read(chunk, ACCOUNT_STATES.name)
    }
    return Sources(rows, messages, states)


def place_of(row: Row) -> tuple[int, int, bytes]:
    """Return by what transactions are ordered."""
    return row["lt"], row["workchain"], row["account"]
