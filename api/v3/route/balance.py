"""The operation about changes of balances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.errors import AnswerNotFound, ParameterMissing, RequestInvalid
from tonlake.api.request.params import Hash, Query
from tonlake.api.text.address import Address, render_raw
from tonlake.api.v3.page.book import pair_addresses
from tonlake.api.v3.page.coverage import check_no_gap
from tonlake.api.v3.page.history import check_derived, name_addresses
from tonlake.api.v3.page.operation import operation
from tonlake.api.v3.page.transaction_page import read_transactions
from tonlake.api.v3.resource.balance import JettonWalletOwner, sum_balances
from tonlake.api.v3.resource.trace import TRACE_TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tonlake.api.request.call import Call

Row = dict[str, Any]


class BalanceChangesQuery(Query, frozen=True, kw_only=True):
    """A trace, or one action of a trace; the action wins."""

    trace_id: Hash = None
    action_id: Hash = None


class BalanceChanges(msgspec.Struct):
    """Changes and fees in nanoton by account, and of jettons by owner and master.

    Changes include fees.
    """

    changes: dict[str, int]
    fees: dict[str, int]
    jettons: dict[str, dict[str, str]]


def get_balance_changes(call: Call, query: BalanceChangesQuery) -> BalanceChanges:
    """List balance changes of a trace or action.

    Raises:
        ParameterMissing: neither trace nor action.
        AnswerNotFound: the lake has no such trace, or no such action.
        RequestInvalid: the trace has too many transactions.
        NotDerived: the lake has no contract detection.
    """
    check_derived(call)
    rows, messages = read_transactions(call, _find_keys(call, query))
    accounts = {Address(row["workchain"], row["account"]) for row in rows}
    found = sum_balances(rows, messages, _read_wallets(call, accounts))
    return BalanceChanges(
        changes=found.changes,
        fees=found.fees,
        jettons={
            owner: {jetton: str(amount) for jetton, amount in held.items()}
            for owner, held in found.jettons.items()
        },
    )


def _find_keys(call: Call, query: BalanceChangesQuery) -> list[Row]:
    if query.action_id is not None:
        keys = call.reader.rows("v3/action_transactions", action_id=query.action_id)
        what = "action_id"
    elif query.trace_id is not None:
        keys = _find_members(call, query.trace_id)
        what = "trace_id"
    else:
        raise ParameterMissing("trace_id or action_id is required")
    if not keys:
        check_no_gap(call.reader)
        raise AnswerNotFound(f"{what} not found")
    return keys


def _find_members(call: Call, trace_id: bytes) -> list[Row]:
    traces = call.reader.rows("v3/traces_by_id", trace_ids=[trace_id], limit=1)
    if not traces:
        return []
    (trace,) = traces
    most = TRACE_TRANSACTIONS
    if trace["transactions"] > most:
        raise RequestInvalid(
            f"this trace has {trace['transactions']} transactions, more than {most}"
        )
    return call.reader.rows(
        "v3/trace_transactions",
        trace_ids=[trace_id],
        first_lt=trace["start_lt"],
        last_lt=trace["end_lt"],
    )


def _read_wallets(call: Call, accounts: Iterable[Address]) -> dict[Address, JettonWalletOwner]:
    pairs = pair_addresses(sorted(accounts))
    rows = call.reader.rows(
        "v3/jetton_wallets",
        **pairs,
        **name_addresses("owner", ()),
        **name_addresses("jetton", ()),
        limit=len(pairs["accounts"]),
    )
    return {
        Address(row["workchain"], row["account"]): JettonWalletOwner(
            owner=render_raw(row["owner_workchain"], row["owner"]),
            jetton=render_raw(row["jetton_workchain"], row["jetton"]),
        )
        for row in rows
        if row["owner"] is not None
    }


routes = [operation("/balanceChanges", BalanceChangesQuery, get_balance_changes)]
