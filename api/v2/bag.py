"""Bags of transactions' cells: made again from rows, or read where they are kept whole."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ingest.block.recipe import rebuild_transaction
from ingest.errors import DecodeError
from lake.errors import LakeCorrupt
from lake.place import read_place
from lake.schema import TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queries.exact import Record
    from queries.reader import Reader

KEPT_BYTES = 8 << 20
"""Of bags that were made again, those of a few thousand transactions: wallets ask for the newest
again and again."""


class KeptBags:
    """Bags by hash of their transaction, which says all that is in them; the newest ones made."""

    def __init__(self, most_bytes: int) -> None:
        """Keep no more than ``most_bytes`` of bags."""
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._bags: dict[bytes, bytes] = {}
        self.size_bytes = 0

    def get(self, transaction: bytes) -> bytes | None:
        """Return the bag of a transaction if it is kept."""
        return self._bags.get(transaction)

    def put(self, transaction: bytes, bag: bytes) -> None:
        """Keep a bag, and let go of the oldest ones where there are too many bytes."""
        with self._lock:
            self.size_bytes += len(bag) - len(self._bags.pop(transaction, b""))
            self._bags[transaction] = bag
            while self.size_bytes > self._most_bytes:
                self.size_bytes -= len(self._bags.pop(next(iter(self._bags))))


_KEPT = KeptBags(KEPT_BYTES)


def read_bags(
    reader: Reader, records: Sequence[Record], kept: KeptBags = _KEPT
) -> dict[bytes, bytes | None]:
    """Return the bag of each transaction by its hash; None where the lake does not have it.

    Raises:
        LakeCorrupt: rows are damaged, and do not give the transaction that they are of.
    """
    bags: dict[bytes, bytes | None] = {}
    whole = []
    for record in records:
        row = record.row
        if row["recipe"] is None:
            whole.append(row)
        else:
            bags[row["hash"]] = bag = kept.get(row["hash"]) or _rebuild(reader, record)
            kept.put(row["hash"], bag)
    if whole:
        lts = [row["lt"] for row in whole]
        found = reader.rows(
            "v2/transaction_bags",
            hashes=[row["hash"] for row in whole],
            first_lt=min(lts),
            last_lt=max(lts),
        )
        bags |= {row["hash"]: row["boc"] for row in found}
    return bags


def _rebuild(reader: Reader, record: Record) -> bytes:
    try:
        return rebuild_transaction(record.row, record.messages)
    except DecodeError as error:
        raise LakeCorrupt(_name_file(reader, record.row["mc_seqno"]), str(error)) from error


def _name_file(reader: Reader, mc_seqno: int) -> str:
    """Return the path of the file that has the transactions of a masterchain block."""
    for file in reader.snapshot.files[TRANSACTIONS.name]:
        place = read_place(file.path)
        if place.first <= mc_seqno <= place.last:
            return file.path
    return TRANSACTIONS.name
