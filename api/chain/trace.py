"""Traces by what belongs to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.queries.reader import Reader


def find_trace_ids(
    reader: Reader, *, tx_hashes: Sequence[bytes] = (), msg_hashes: Sequence[bytes] = ()
) -> list[bytes]:
    """Return the traces of transactions or else of messages, each once, in no order."""
    if tx_hashes:
        found = reader.rows("v3/trace_ids_of_transactions", hashes=list(tx_hashes))
    else:
        found = reader.rows("v3/trace_ids_of_messages", msg_hashes=list(msg_hashes))
    return [row["trace_id"] for row in found]
