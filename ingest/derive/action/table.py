"""Converts actions to rows of the lake: ``actions``, and the tables derived from it."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.action.precedence import CLASSIFIER_VERSION
from tonlake.lake.schema.action import ACTION_ACCOUNTS, ACTIONS, DEX_SWAPS, NFT_SALES_EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from tonlake.ingest.derive.action.model import Trace
    from tonlake.ingest.derive.action.row import Action
    from tonlake.lake.schema import Table

Row = dict[str, Any]

_TEXTS = (
    *("source", "source_secondary", "destination", "destination_secondary"),
    *("asset", "asset_secondary", "asset2", "asset2_secondary"),
)
_MAX_AMOUNT = 10**38 - 1
_DETAILS = ("_data", "extra")
"""Suffixes of the columns that are stored in ``details``."""

_SWAPS = {"jetton_swap"}
_SALES = {
    *("nft_put_on_sale", "nft_put_on_auction", "nft_cancel_sale", "nft_cancel_auction"),
    *("nft_update_sale", "nft_purchase", "nft_finish_auction", "auction_bid", "auction_outbid"),
    *("teleitem_start_auction", "teleitem_cancel_auction", "dns_purchase", "dns_release"),
}


class ActionRows:
    """Collects the actions of traces as rows of tables."""

    def __init__(self) -> None:
        """Create an empty collection."""
        self._rows: list[tuple[Any, ...]] = []

    @property
    def count(self) -> int:
        """Number of actions so far."""
        return len(self._rows)

    def add(self, trace: Trace, actions: Iterable[Action]) -> None:
        """Add the actions of one trace."""
        shared = (*_read_trace(trace), CLASSIFIER_VERSION)
        seen = set()
        for action in actions:
            if action.action_id not in seen:
                seen.add(action.action_id)
                self._rows.append(_make_row(action) + shared)

    def tables(self) -> dict[str, pa.Table]:
        """Return the rows of every table derived from actions, by name."""
        actions = ACTIONS.empty
        if self._rows:
            columns = dict(zip(_NAMES, zip(*self._rows, strict=True), strict=True))
            actions = pa.table(columns, schema=ACTIONS.arrow)
        return {
            ACTIONS.name: actions,
            ACTION_ACCOUNTS.name: _list_accounts(actions),
            DEX_SWAPS.name: _collect(DEX_SWAPS, map(_make_swap, self._find(_SWAPS))),
            NFT_SALES_EVENTS.name: _collect(NFT_SALES_EVENTS, map(_make_sale, self._find(_SALES))),
        }

    def _find(self, types: AbstractSet[str]) -> Iterator[Row]:
        """Yield the rows of some types."""
        for row in self._rows:
            if row[_TYPE] in types:
                yield dict(zip(_NAMES, row, strict=True))


def _collect(table: Table, rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table; other keys of the rows are ignored."""
    kept = list(rows)
    return pa.Table.from_pylist(kept, schema=table.arrow) if kept else table.empty


def _make_row(action: Action) -> tuple[Any, ...]:
    """Return the values of an action in the order of ``_NAMES``, without those of its trace."""
    columns = action.columns
    find = columns.get
    details = {name: value for name, value in columns.items() if name.endswith(_DETAILS)}
    currencies = find("value_extra_currencies")
    return (
        *_read_action(action),
        *map(find, _TEXTS),
        find("opcode"),
        _fit(find("amount")),
        _fit(find("value")),
        _encode(currencies) if currencies else None,
        _encode(details) if details else None,
    )


_FROM_ACTION = (
    *("action_id", "type", "success", "start_lt", "end_lt", "start_utime", "end_utime"),
    *("mc_seqno_end", "tx_hashes", "accounts", "parent_action_id", "ancestor_type", "rule"),
)
_TYPE = _FROM_ACTION.index("type")
_NAMES = (
    *(*_FROM_ACTION, *_TEXTS),
    *("opcode", "amount", "value", "value_extra_currencies", "details"),
    *("trace_id", "mc_seqno", "trace_end_lt", "trace_end_utime"),
    *("trace_external_hash", "trace_external_hash_norm", "classifier_version"),
)
"""Columns of ``actions`` in the order of their values: action, trace, classifier version."""

_read_action = attrgetter(*_FROM_ACTION)
_read_trace = attrgetter(
    *("trace_id", "mc_seqno_end", "end_lt", "end_utime", "external_hash", "external_hash_norm")
)


def _encode(value: object) -> str:
    """Return JSON; integers beyond the precision of doubles stay exact."""
    return msgspec.json.encode(value).decode()


def _fit(amount: int | None) -> int | None:
    """Return an amount; None if it exceeds any coins, as when a body has another layout."""
    return amount if amount is not None and abs(amount) <= _MAX_AMOUNT else None


def _list_accounts(actions: pa.Table) -> pa.Table:
    """Return a row for each account of each action; the other columns are the action's."""
    addresses = pc.list_flatten(actions["accounts"]).combine_chunks().dictionary_encode()
    if not len(addresses):
        return ACTION_ACCOUNTS.empty
    known = [address.partition(":") for address in addresses.dictionary.to_pylist()]
    own = {
        "workchain": [int(workchain) for workchain, _, _account in known],
        "account": [bytes.fromhex(account) for _workchain, _, account in known],
    }
    parents = pc.list_parent_indices(actions["accounts"])
    fields = [field for field in ACTION_ACCOUNTS.arrow if field.name not in own]
    shared = actions.select([field.name for field in fields]).take(parents)
    columns = dict(zip(shared.column_names, shared.columns, strict=True))
    for name, values in own.items():
        kind = ACTION_ACCOUNTS.arrow.field(name).type
        columns[name] = pa.array(values, kind).take(addresses.indices)
    return pa.table(columns, schema=ACTION_ACCOUNTS.arrow)


def _make_swap(row: Row) -> Row:
    data = json.loads(row["details"])["jetton_swap_data"]
    incoming, outgoing = data["dex_incoming_transfer"] or {}, data["dex_outgoing_transfer"] or {}
    return row | {
        "dex": data["dex"],
        "sender": row["source"],
        "pool": incoming.get("destination") or outgoing.get("source"),
        "asset_in": row["asset"],
        "amount_in": incoming.get("amount"),
        "asset_out": row["asset2"],
        "amount_out": outgoing.get("amount"),
        "hops": len(data.get("peer_swaps") or ()) or 1,
    }


def _make_sale(row: Row) -> Row:
    details = json.loads(row["details"] or "{}")
    moved, listed = details.get("nft_transfer_data", {}), details.get("nft_listing_data", {})
    event = row["type"]
    is_bid, is_purchase = event.startswith("auction_"), event.endswith("_purchase")
    buyer = row["destination"] if is_purchase else row["source"] if is_bid else None
    seller = moved.get("real_prev_owner") if is_purchase or is_bid else row["source"]
    return row | {
        "event": event,
        "collection": row["asset"],
        "item": row["asset_secondary"],
        "seller": seller,
        "buyer": row["source_secondary"] if event == "auction_outbid" else buyer,
        "sale": row["source"] if is_purchase or event == "auction_outbid" else row["destination"],
        "marketplace": moved.get("marketplace") or listed.get("marketplace"),
        "marketplace_address": moved.get("marketplace_address"),
        "price": _fit(moved.get("price") or listed.get("full_price") or row["value"]),
    }
