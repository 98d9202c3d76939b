"""Action types a client knows, a check that the lake has actions, and the actions of traces."""

from collections.abc import Sequence
from operator import itemgetter

from tonlake.api.errors import NotDerived
from tonlake.api.request.call import Call
from tonlake.api.text.encoding import name_ranges
from tonlake.api.v3.page.history import warn_of_unanswered
from tonlake.api.v3.resource.action import CURRENCY_TRANSFER, Action, render_action
from tonlake.ingest.derive.action.version import expand_names
from tonlake.lake.schema.contract import (
    DEX_POOLS,
    JETTON_WALLETS,
    MULTISIG_ORDERS,
    NFT_ITEMS,
    NFT_SALES,
)
from tonlake.queries.reader import Row

LATEST = "latest"
_NO_LIMIT = (1 << 31) - 1

_CLASSIFIED_BY = tuple(
    table.name for table in (JETTON_WALLETS, NFT_ITEMS, NFT_SALES, MULTISIG_ORDERS, DEX_POOLS)
)
"""Contracts that rules of actions look up."""


def choose_types(call: Call, names: Sequence[str]) -> frozenset[str]:
    """Return the action types a client knows: by the header X-Actions-Version, else the parameter.

    A client that knows transfers also knows those of extra currencies.
    """
    chosen = [call.actions_version] if call.actions_version else names or [LATEST]
    return expand_names((*chosen, CURRENCY_TRANSFER))


def check_classified(call: Call, *, is_empty: bool) -> None:
    """Add warnings about blocks whose traces, and contracts, are not classified.

    Raises:
        NotDerived: the result is empty, possibly for that reason.
    """
    warn_of_unanswered(call, "actions may have general types", *_CLASSIFIED_BY)
    held = call.reader.snapshot.ranges
    done = [
        (row["first_mc_seqno"], row["last_mc_seqno"])
        for row in call.reader.lasting_rows("v3/action_ranges")
    ]
    count = sum(last - first + 1 for first, last in done)
    if count >= sum(last - first + 1 for first, last in held):
        return
    classified = f"only of masterchain {name_ranges(done)}" if done else "of no block"
    advice = f"this lake has actions {classified}; run 'tonlake rebuild actions'"
    if is_empty:
        raise NotDerived(advice)
    call.warn(advice)


def read_trace_actions(
    call: Call, traces: Sequence[Row], names: Sequence[str]
) -> tuple[dict[bytes, list[Action]], list[Row]]:
    """Return the actions of the traces in ``rows`` by trace id, and the rows of the actions.

    Raises:
        NotDerived: the traces of this lake are not classified.
    """
    found: dict[bytes, list[Action]] = {row["trace_id"]: [] for row in traces}
    if not traces:
        return found, []
    supported = sorted(choose_types(call, names))
    rows = call.reader.rows(
        "v3/actions",
        trace_ids=list(found),
        action_ids=[],
        tx_hashes=[],
        start_lt=min(row["end_lt"] for row in traces),
        end_lt=max(row["end_lt"] for row in traces),
        types=supported,
        excluded=[],
        hidden_under=supported,
        limit=_NO_LIMIT,
    )
    rows.sort(key=itemgetter("start_lt", "end_lt", "action_id"))
    check_classified(call, is_empty=not rows)
    for row in rows:
        found[row["trace_id"]].append(render_action(row))
    return found, rows
