"""Newest states of accounts, accounts by balance, and cells of states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.lake.index.page import Declined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.lake.index.index import Index


Row = dict[str, Any]


def find_newest_states(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/accounts`` of the newest block."""
    if asked["mc_seqno"] is not None:
        raise Declined
    accounts = list(zip(asked["workchains"], asked["accounts"], strict=True))
    if len(accounts) > 1:
        accounts = sorted(dict.fromkeys(accounts))  # mostly sorted already
    states = index.segments.newest_states(accounts)
    return [state for state in states if state is not None]


def find_newest_state(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v2/account_state`` of the newest masterchain block."""
    if asked["mc_seqno"] != index.snapshot.last_mc_seqno:
        raise Declined
    (state,) = index.segments.newest_states([(asked["workchain"], asked["account"])])
    return [] if state is None else [state]


def rank_accounts(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/accounts_by_balance``."""
    ranked = index.segments.rank_accounts(asked["offset"], asked["limit"])
    return [
        {"workchain": workchain, "account": account, "balance": balance}
        for balance, workchain, account in ranked
    ]


def find_cells(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``cells``."""
    found = index.cells.find(asked["hashes"])
    return [{"hash": key, "cell": cell, "refs": refs} for key, (cell, refs) in found.items()]
