"""Generated chains for the tests of traces: forests of messages spread over masterchain blocks."""

import hashlib
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tonlake.lake.schema import BLOCKS, MESSAGES, TRANSACTIONS, Column, Table

Row = dict[str, Any]

DAY_S = 86_400
BLOCKS_A_DAY = 5
BLANKS: dict[str, Any] = {"hash": b"\0" * 32, "bool": False, "text": "", "hashes": []}
SOURCES = {
    "sys": {"source_workchain": -1, "source": bytes(32)},
    "ord": {"source_workchain": 0, "source": b"\x11" * 32},
}
MAX_TRANSACTIONS = 60


def digest(*parts: object) -> bytes:
    """Return a hash in place of a cell's."""
    return hashlib.sha256(repr(parts).encode()).digest()


class Forest:
    """Transactions and messages as rows; ``last`` is the last masterchain block."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.transactions: list[Row] = []
        self.messages: list[Row] = []

    def add(self, mc_seqno: int, arrived: Row | None, outs: Iterable[str] = ()) -> list[Row]:
        """Add a transaction, and return its out messages of kind int."""
        lt = 10 * len(self.transactions) + 10
        transaction = {
            "workchain": 0,
            "account": digest("account", lt % 7),
            "lt": lt,
            "hash": digest("tx", lt),
            "mc_seqno": mc_seqno,
            "now": mc_seqno * DAY_S // BLOCKS_A_DAY,
        }
        self.transactions.append(transaction)
        context = {"tx_hash": transaction["hash"], "tx_lt": lt, "mc_seqno": mc_seqno}
        if arrived is not None:
            self.messages.append(arrived | context | {"direction": "in"})
        # Some senders have the address that messages of the validators name as well.
        source = SOURCES["sys" if lt % 4 == 0 else "ord"]
        sent = [
            {"kind": kind, "msg_hash": digest(kind, lt, at), "created_lt": lt + 1 + at, **source}
            for at, kind in enumerate(outs)
        ]
        for at, message in enumerate(sent):
            self.messages.append(message | context | {"direction": "out", "msg_index": at})
        return [message for message in sent if message["kind"] == "int"]

    def make_arrival(self, root: str) -> Row | None:
        """Make the in message of a root: ext, sys, ord, or none for tick."""
        number = len(self.transactions)
        if root == "tick":
            return None
        if root == "ext":
            # An external message may be executed many times: its hash is not a key.
            hashes = {"msg_hash": digest("ext", number % 3), "hash_norm": digest(number % 3)}
            return {"kind": "ext_in", **hashes}
        created_lt = 1_000_000 * number if root == "sys" else 10 * number + 9
        message = {"kind": "int", "msg_hash": digest(number), "created_lt": created_lt}
        return message | SOURCES[root]

    def tables(self, first: int, last: int) -> dict[str, pa.Table]:
        """Return the rows of a range of masterchain blocks, with at least one block row."""
        blocks = [{"workchain": -1, "seqno": at, "mc_seqno": at} for at in range(first, last + 1)]
        return {
            "blocks": make_rows(blocks, BLOCKS),
            "transactions": make_rows(_between(self.transactions, first, last), TRANSACTIONS),
            "messages": make_rows(_between(self.messages, first, last), MESSAGES),
        }


def make_rows(rows: list[Row], table: Table) -> pa.Table:
    """Return rows with all columns of a table; missing values are NULL or blank."""
    return pa.table(
        [
            pa.array([row.get(column.name, _blank(column)) for row in rows], column.arrow.type)
            for column in table.columns
        ],
        schema=table.arrow,
    )


def _blank(column: Column) -> object:
    return None if column.nullable else BLANKS.get(column.type, 0)


def _between(rows: list[Row], first: int, last: int) -> list[Row]:
    return [row for row in rows if first <= row["mc_seqno"] <= last]


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    """Draw a forest whose messages take zero to four masterchain blocks, or are not consumed."""
    forest = Forest(draw(st.integers(1, 12)))
    kinds = st.lists(st.sampled_from(["int", "int", "ext_out"]), max_size=3)
    roots = st.lists(st.sampled_from(["ext", "ext", "tick", "sys", "ord"]), max_size=2)
    flying: list[tuple[int, Row]] = []
    for mc_seqno in range(1, forest.last + 1):
        landing = [message for at, message in flying if at == mc_seqno]
        flying = [(at, message) for at, message in flying if at > mc_seqno]
        for root in draw(roots):
            landing += forest.add(mc_seqno, forest.make_arrival(root), draw(kinds))
        while landing and len(forest.transactions) < MAX_TRANSACTIONS:
            message = landing.pop()
            delay = draw(st.integers(0, 4))
            if delay:
                flying.append((mc_seqno + delay, message))
            else:
                landing += forest.add(mc_seqno, message, draw(kinds))
    return forest
