"""Estimates the rows that SQL must read for a page, from file names and row groups.

Exact filters on hashes are not counted: bloom filters leave few row groups for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.lake.index.rowgroup.cache import count_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.lake.index.rowgroup.predicate import Bounds
    from tonlake.lake.log.snapshot import Snapshot

_MIN_VALUE, _MAX_VALUE = 0, (1 << 63) - 1


class Work(NamedTuple):
    """The table that a page is cut from, and the columns of its filters."""

    table: str
    utime: str
    lt: str
    exact: Mapping[str, str]
    """Column by parameter."""
    hashes: frozenset[str] = frozenset()
    """Parameters with hashes, which find their rows."""


_OF_MESSAGES = Work(
    "messages",
    "created_at",
    "created_lt",
    {},
    frozenset({"msg_hashes", "body_hash"}),
)
_OF_MOVES = {
    name: Work(name, "now", "lt", {})
    for name in ("jetton_transfers", "jetton_burns", "nft_transfers")
}
PAGES: dict[str, Work] = {
    "v3/transaction_keys": Work(
        "transactions", "now", "lt", {"mc_seqno": "mc_seqno", "lt": "lt"}, frozenset({"hashes"})
    ),
    "v3/message_keys": _OF_MESSAGES,
    "v3/transaction_keys_by_message": _OF_MESSAGES,
    "v3/traces": Work("traces", "end_utime", "end_lt", {"mc_seqno": "mc_seqno_end"}),
    "v3/actions": Work(
        "actions",
        "trace_end_utime",
        "trace_end_lt",
        {"mc_seqno": "mc_seqno"},
        frozenset({"trace_ids", "action_ids", "tx_hashes"}),
    ),
    "v3/blocks": Work(
        "blocks",
        "gen_utime",
        "start_lt",
        {name: name for name in ("mc_seqno", "seqno")},
        frozenset({"root_hash", "file_hash"}),
    ),
    **{f"v3/{name}": work for name, work in _OF_MOVES.items()},
}
"""Work of pages that accept any combination of filters, by query name."""


def count_work(snapshot: Snapshot, name: str, asked: Mapping[str, Any], most: int) -> int:
    """Return the rows that SQL would read for a page; 0 if at most ``most``.

    Queries that are not pages, or have a hash, also return 0.
    """
    work = PAGES.get(name)
    if work is None or any(asked.get(key) for key in work.hashes):
        return 0
    if sum(file.rows for file in snapshot.files[work.table]) <= most:
        return 0
    rows = count_rows(snapshot, work.table, _bound(work, asked))
    return rows if rows > most else 0


def _bound(work: Work, asked: Mapping[str, Any]) -> dict[str, Bounds]:
    bounds: dict[str, Bounds] = {
        column: (asked[key], asked[key])
        for key, column in work.exact.items()
        if asked.get(key) is not None
    }
    for unit, column in (("utime", work.utime), ("lt", work.lt)):
        first, last = asked.get(f"start_{unit}"), asked.get(f"end_{unit}")
        if (first, last) != (None, None):
            span = _MIN_VALUE if first is None else first, _MAX_VALUE if last is None else last
            bounds.setdefault(column, span)
    return bounds
