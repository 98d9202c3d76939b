"""A reference implementation of traces, one transaction at a time, to compare the assembly with."""

from typing import Any

Row = dict[str, Any]


def trace_rows(transactions: list[Row], messages: list[Row]) -> dict[str, list[Row]]:
    """Return the rows of the three trace tables, each in key order."""
    arrived = {row["tx_hash"]: row for row in messages if row["direction"] == "in"}
    sent = {
        (row["msg_hash"], row["created_lt"]): row
        for row in messages
        if row["direction"] == "out" and row["kind"] == "int"
    }
    parents: dict[bytes, bytes | None] = {}
    edges: dict[bytes, str | None] = {}
    for transaction in transactions:
        message = arrived.get(transaction["hash"])
        edges[transaction["hash"]] = _edge_of(message)
        sender = None
        if message is not None and edges[transaction["hash"]] == "ord":
            sender = sent.get((message["msg_hash"], message["created_lt"]))
        parents[transaction["hash"]] = None if sender is None else sender["tx_hash"]
    roots = {hash_: _climb(hash_, parents) for hash_ in parents}
    return {
        "transaction_traces": _list_transactions(transactions, roots, parents, edges),
        "traces": _list_traces(transactions, messages, roots, edges),
        "open_edges": _list_open(messages, roots, parents, edges),
    }


def _edge_of(message: Row | None) -> str | None:
    if message is None:
        return None
    if message["kind"] == "ext_in":
        return "ext"
    is_zero = message["source_workchain"] == -1 and message["source"] == bytes(32)
    return "sys" if is_zero and message["created_lt"] % 1_000_000 == 0 else "ord"


def _climb(hash_: bytes, parents: dict[bytes, bytes | None]) -> bytes:
    while (parent := parents[hash_]) is not None:
        hash_ = parent
    return hash_


def _list_transactions(
    transactions: list[Row],
    roots: dict[bytes, bytes],
    parents: dict[bytes, bytes | None],
    edges: dict[bytes, str | None],
) -> list[Row]:
    names = ("workchain", "account", "lt", "hash", "mc_seqno")
    rows = [
        {name: row[name] for name in names}
        | {
            "trace_id": roots[row["hash"]],
            "parent_hash": parents[row["hash"]],
            "edge": edges[row["hash"]],
        }
        for row in transactions
    ]
    return sorted(rows, key=lambda row: (row["lt"], row["workchain"], row["account"]))


def _list_traces(
    transactions: list[Row],
    messages: list[Row],
    roots: dict[bytes, bytes],
    edges: dict[bytes, str | None],
) -> list[Row]:
    consumed = {row["msg_hash"] for row in messages if row["direction"] == "in"}
    arrived = {row["tx_hash"]: row for row in messages if row["direction"] == "in"}
    rows = []
    for trace_id in set(roots.values()):
        members = [row for row in transactions if roots[row["hash"]] == trace_id]
        mine = [row for row in messages if roots[row["tx_hash"]] == trace_id]
        pending = [
            row
            for row in mine
            if row["direction"] == "out"
            and row["kind"] == "int"
            and row["msg_hash"] not in consumed
        ]
        first = arrived.get(trace_id, {})
        rows.append(
            {
                "trace_id": trace_id,
                "external_hash": first.get("msg_hash"),
                "external_hash_norm": first.get("hash_norm"),
                "mc_seqno_start": min(row["mc_seqno"] for row in members),
                "mc_seqno_end": max(row["mc_seqno"] for row in members),
                "start_lt": min(row["lt"] for row in members),
                "end_lt": max(row["lt"] for row in members),
                "start_utime": min(row["now"] for row in members),
                "end_utime": max(row["now"] for row in members),
                "state": "broken"
                if edges[trace_id] == "ord"
                else ("pending" if pending else "complete"),
                "transactions": len(members),
                "messages": sum(
                    row["direction"] == "in" or row["kind"] == "ext_out" for row in mine
                ),
                "pending_messages": len(pending),
            }
        )
    return sorted(rows, key=lambda row: (row["end_lt"], row["trace_id"]))


def _list_open(
    messages: list[Row],
    roots: dict[bytes, bytes],
    parents: dict[bytes, bytes | None],
    edges: dict[bytes, str | None],
) -> list[Row]:
    consumed = {row["msg_hash"] for row in messages if row["direction"] == "in"}
    names = ("direction", "msg_hash", "created_lt", "tx_hash")
    rows = [
        {name: row[name] for name in names}
        | {"trace_id": roots[row["tx_hash"]], "mc_seqno": row["mc_seqno"]}
        for row in messages
        if (row["direction"] == "out" and row["kind"] == "int" and row["msg_hash"] not in consumed)
        or (
            row["direction"] == "in"
            and edges[row["tx_hash"]] == "ord"
            and parents[row["tx_hash"]] is None
        )
    ]
    return sorted(rows, key=lambda row: (row["created_lt"], row["msg_hash"], row["direction"]))
