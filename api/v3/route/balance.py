"""The operation about balance changes: of TON by messages and fees, of jettons by bodies."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tonlake.api.errors import AnswerNotFound, ParameterMissing, RequestInvalid
from tonlake.api.request.call import Call, Hash, Query
from tonlake.api.text.encoding import Address, render_raw
from tonlake.api.v3.page.book import pair_addresses
from tonlake.api.v3.page.history import check_derived
from tonlake.api.v3.page.operation import check_no_gap, operation
from tonlake.api.v3.page.transaction_page import read_records
from tonlake.api.v3.resource.answer import TRACE_TRANSACTIONS
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.action.pattern import BOUNCES, NEW_BOUNCE_OPCODE
from tonlake.ingest.derive.action.protocol import jetton
from tonlake.ingest.errors import BocError
from tonlake.lake.index.segment.declared import Record
from tonlake.lake.schema import JETTON_WALLETS
from tonlake.queries.reader import Row

_OPCODE_BITS, _QUERY_BITS = 32, 64
_SIGNS = {jetton.INTERNAL: 1, jetton.TRANSFER: -1, jetton.BURN: -1}
_RETURNED = {jetton.INTERNAL, jetton.BURN_NOTIFICATION}
"""Messages sent by a wallet when jettons leave it; if one bounces, the jettons return."""


class BalanceChanges(msgspec.Struct):
    """Changes, fees included, and fees in nanoton by account; jettons by owner and master."""

    changes: dict[str, int]
    fees: dict[str, int]
    jettons: dict[str, dict[str, str]]


def sum_balances(
    records: Iterable[Record], wallets: Mapping[Address, tuple[str, str]]
) -> BalanceChanges:
    """Return the balance changes that transactions caused on their accounts.

    ``changes`` is the balance after minus the balance before, so it includes fees. ``fees`` is what
    validators received: the fees of the transaction, and the forward fees of its out messages.
    ``wallets`` are owner and master of jetton wallets, as raw addresses.
    """
    changes: dict[str, int] = defaultdict(int)
    fees: dict[str, int] = defaultdict(int)
    jettons: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row, own, *_states in records:
        account = render_raw(row["workchain"], row["account"])
        paid = row["total_fees"] + _sum(own, "out", "fwd_fee") + _sum(own, "out", "ihr_fee")
        received = _sum(own, "in", "value") + _sum(own, "in", "ihr_fee")
        fees[account] += paid
        changes[account] += received - _sum(own, "out", "value") - paid
        wallet = wallets.get(Address(row["workchain"], row["account"]))
        if wallet is not None and not row["aborted"]:
            jettons[wallet[0]][wallet[1]] += sum(map(read_jettons, own))
    moved = {
        owner: {jetton: str(amount) for jetton, amount in held.items() if amount}
        for owner, held in jettons.items()
    }
    kept = {owner: held for owner, held in moved.items() if held}
    return BalanceChanges(dict(changes), dict(fees), kept)


def read_jettons(message: Row) -> int:
    """Return the change of a jetton wallet's balance by a message it received (TEP-74)."""
    if message["direction"] != "in" or message["body"] is None or message["kind"] != "int":
        return 0
    try:
        tree = parse_boc(message["body"])
        source = tree.slice(tree.roots[0])
        opcode = source.load_uint(_OPCODE_BITS)
        sign = _SIGNS.get(opcode, 0)
        if opcode == NEW_BOUNCE_OPCODE:  # the original body is whole, in a reference
            source = tree.slice(source.load_ref())
        if opcode in BOUNCES:
            sign = 1 if source.load_uint(_OPCODE_BITS) in _RETURNED else 0
        if not sign:
            return 0
        source.skip(_QUERY_BITS)
        return sign * source.load_coins()
    except BocError:
        return 0


def _sum(messages: Sequence[Row], direction: str, column: str) -> int:
    return sum(row[column] or 0 for row in messages if row["direction"] == direction)


class BalanceChangesQuery(Query, frozen=True, kw_only=True):
    """A trace, or an action, which takes precedence."""

    trace_id: Hash = None
    action_id: Hash = None


def get_balance_changes(call: Call, query: BalanceChangesQuery) -> BalanceChanges:
    """List balance changes of a trace or action."""
    check_derived(call, JETTON_WALLETS.name)
    records = list(read_records(call, _find_keys(call, query)))
    accounts = {Address(one.row["workchain"], one.row["account"]) for one in records}
    return sum_balances(records, _read_wallets(call, accounts))


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
        raise RequestInvalid(f"this trace has {trace['transactions']} transactions, over {most}")
    return call.reader.rows(
        "v3/trace_transactions",
        trace_ids=[trace_id],
        first_lt=trace["start_lt"],
        last_lt=trace["end_lt"],
    )


def _read_wallets(call: Call, accounts: Iterable[Address]) -> dict[Address, tuple[str, str]]:
    pairs = pair_addresses(sorted(accounts))
    rows = call.reader.rows("v3/jetton_wallets", **pairs, limit=len(pairs["accounts"]))
    return {
        Address(row["workchain"], row["account"]): (
            render_raw(row["owner_workchain"], row["owner"]),
            render_raw(row["jetton_workchain"], row["jetton"]),
        )
        for row in rows
        if row["owner"] is not None
    }


routes = [operation("/balanceChanges", BalanceChangesQuery, get_balance_changes)]
