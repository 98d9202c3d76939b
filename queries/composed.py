"""Composes rows from several queries: complete transactions and messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.lake.index.segment.declared import Record
from tonlake.queries.loader import REQUIRED, Parameter, Query, load_queries

if TYPE_CHECKING:
    from tonlake.queries.reader import Reader

Row = dict[str, Any]


class Composed(NamedTuple):
    """A function that composes the rows, and the query that declares its parameters."""

    query: Query
    compose: Callable[[Reader, Mapping[str, Any]], list[Any]]


def _compose_transactions(reader: Reader, asked: Mapping[str, Any]) -> list[Any]:
    keys: Sequence[Mapping[str, Any]] = asked["keys"]
    if not keys:
        return []
    hashes = [key["hash"] for key in keys]
    lts = [key["lt"] for key in keys]
    span = {"first_lt": min(lts), "last_lt": max(lts)}
    found = {row["hash"]: row for row in reader.rows("v3/transaction_rows", hashes=hashes, **span)}
    messages: dict[bytes, list[Row]] = {tx_hash: [] for tx_hash in hashes}
    lines = reader.rows("v3/message_rows", tx_hashes=hashes, msg_hashes=[], **span)
    for line in sorted(lines, key=itemgetter("direction", "msg_index")):
        messages[line["tx_hash"]].append(line)
    rows = [found[tx_hash] for tx_hash in hashes]
    state_keys = {_state_key(row, when) for row in rows for when in ("before", "after")}
    workchains, accounts, state_hashes = (
        list(part) for part in zip(*sorted(state_keys), strict=True)
    )
    states = {
        (row["workchain"], row["account"], row["hash"]): row
        for row in reader.rows(
            "v3/account_states_by_hash",
            workchains=workchains,
            accounts=accounts,
            hashes=state_hashes,
        )
    }
    return [
        Record(
            row,
            messages[row["hash"]],
            states.get(_state_key(row, "before")),
            states.get(_state_key(row, "after")),
        )
        for row in rows
    ]


def _state_key(row: Row, when: str) -> tuple[int, bytes, bytes]:
    return row["workchain"], row["account"], row[f"account_state_hash_{when}"]


def _compose_messages(reader: Reader, asked: Mapping[str, Any]) -> list[Any]:
    keys = reader.rows("v3/message_keys", **asked)
    if not keys:
        return []
    found = reader.rows(
        "v3/message_rows",
        tx_hashes=[key["tx_hash"] for key in keys],
        msg_hashes=[key["msg_hash"] for key in keys],
        first_lt=min(key["tx_lt"] for key in keys),
        last_lt=max(key["tx_lt"] for key in keys),
    )
    rows = {(row["tx_hash"], row["msg_hash"]): row for row in found}
    return [rows[key["tx_hash"], key["msg_hash"]] | key for key in keys]


@cache
def find_composed(name: str) -> Composed | None:
    """Return the composition of a name; None if a single query returns the rows.

    ``v3/transactions`` takes ``keys``, rows with ``hash`` and ``lt``, and returns a ``Record`` for
    each in their order. ``v3/messages`` takes the parameters of ``v3/message_keys``, and returns
    rows of ``v3/message_rows`` with the columns of the keys.
    """
    if name == "v3/transactions":
        keys = Parameter("keys", "row[]", REQUIRED, "keys of transactions")
        query = Query(
            name=name,
            sql="",
            parameters={keys.name: keys},
            defaults={keys.name: REQUIRED},
            doc="Transactions with messages and states.",
            returns="records",
        )
        return Composed(query, _compose_transactions)
    if name == "v3/messages":
        return Composed(load_queries()["v3/message_keys"], _compose_messages)
    return None
