"""A transaction's bag of cells, without any lake, as the object that version 3 answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.v3.resource.transaction import render_transaction
from tonlake.ingest.decode.block.transaction import decode_transaction
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tonlake.api.v3.layout.transaction import Transaction

Row = dict[str, Any]


def render_decoded(
    data: bytes, opcode_format: str, *, global_version: int | None = None
) -> Transaction:
    """Return the transaction in a bag of cells; what only block or state say is null.

    Raises:
        BocError, DecodeError: ``data`` is no transaction.
    """
    row, messages = decode_transaction(data, global_version=global_version)
    row["workchain"] = find_workchain(messages)
    return render_transaction(row, messages, {}, opcode_format)


def find_workchain(messages: Iterable[Row]) -> int:
    """Return the workchain of a transaction's account, which is named by its messages alone.

    One without messages can only be a tick or tock, which exists in the masterchain alone.
    """
    for message in messages:
        end = "destination" if message["direction"] == "in" else "source"
        if message[f"{end}_workchain"] is not None:
            return int(message[f"{end}_workchain"])
    return MASTERCHAIN
