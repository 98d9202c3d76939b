"""Bags of transactions: rebuilt from rows, or read where they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.ingest.decode.block.recipe import rebuild_transaction
from tonlake.ingest.errors import DecodeError
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.place import read_place
from tonlake.lake.schema import TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tonlake.queries.composed import Record
    from tonlake.queries.reader import Reader


def read_bags(reader: Reader, records: Sequence[Record]) -> dict[bytes, bytes | None]:
    """Return the bag of each transaction by its hash; None where the lake does not have it.

    Raises:
        LakeCorrupt: rows are damaged, and do not give the transaction that they are of.
    """
    bags: dict[bytes, bytes | None] = {}
    stored = []
    for record in records:
        row = record.row
        if row["recipe"] is None:
            stored.append(row)
        else:
            bags[row["hash"]] = _rebuild(reader, row, record.messages)
    if stored:
        lts = [row["lt"] for row in stored]
        found = reader.rows(
            "v2/transaction_bags",
            hashes=[row["hash"] for row in stored],
            first_lt=min(lts),
            last_lt=max(lts),
        )
        bags |= {row["hash"]: row["boc"] for row in found}
    return bags


def _rebuild(
    reader: Reader, row: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
) -> bytes:
    try:
        return rebuild_transaction(row, messages)
    except DecodeError as error:
        raise LakeCorrupt(_name_file(reader, row["mc_seqno"]), str(error)) from error


def _name_file(reader: Reader, mc_seqno: int) -> str:
    """Return the path of the file that has the transactions of a masterchain block."""
    for file in reader.snapshot.files[TRANSACTIONS.name]:
        place = read_place(file.path)
        if place.first <= mc_seqno <= place.last:
            return file.path
    return TRANSACTIONS.name
