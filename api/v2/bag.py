"""Bags of transactions' cells: made again from rows, or read where they are kept whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.block.recipe import rebuild_transaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queries.exact import Record
    from queries.reader import Reader


def read_bags(reader: Reader, records: Sequence[Record]) -> dict[bytes, bytes | None]:
    """Return the bag of each transaction by its hash; None where the lake does not have it.

    Raises:
        DecodeError: rows are damaged, and do not give the transaction that they are of.
    """
    bags: dict[bytes, bytes | None] = {}
    whole = []
    for record in records:
        row = record.row
        if row["recipe"] is None:
            whole.append(row)
        else:
            bags[row["hash"]] = rebuild_transaction(row, record.messages)
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
