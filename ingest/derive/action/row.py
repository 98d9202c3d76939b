"""Converts top blocks to actions, and actions to rows of the lake.

Actions of types that old clients know hide their parts; all others show them, as separate actions
that name their ancestors.
"""

import base64
import json
from binascii import b2a_base64
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter, itemgetter
from typing import Any

import msgspec
import pyarrow as pa

from tonlake.ingest.derive.action.model import Node, Trace
from tonlake.ingest.derive.action.precedence import CLASSIFIER_VERSION
from tonlake.ingest.derive.action.rule import CALL, EXTRA, GASLESS, MARKERS, TRANSFER, Block
from tonlake.lake.file.rows import Row, make_rows
from tonlake.lake.schema import ACTION_ACCOUNTS, ACTIONS, DEX_SWAPS, NFT_SALES_EVENTS
from tonlake.lake.schema.action_type import CURRENCY_TRANSFER, SALES, V1_BLOCKS

_START_LT, _LT = attrgetter("start_lt"), attrgetter("lt")
_SOURCES = ("source", "source_secondary")
_ACCOUNTS = (*_SOURCES, "destination", "destination_secondary")


class ActionRow(msgspec.Struct, kw_only=True):
    """An action; hashes are bytes, accounts ``workchain:HEX``.

    ``is_broken`` marks an action that its rule could not read in full, or that contradicts its
    request.
    """

    action_id: bytes
    type: str
    success: bool
    start_lt: int
    end_lt: int
    start_utime: int
    end_utime: int
    mc_seqno_end: int
    tx_hashes: list[bytes]
    accounts: list[str]
    columns: dict[str, Any]
    rule: str
    parent_action_id: bytes | None = None
    ancestor_type: list[str] = []
    is_broken: bool = False

    @property
    def kept_type(self) -> str:
        """The type in TON Center's table: only its API knows transfers of extra currencies."""
        if self.type != CURRENCY_TRANSFER:
            return self.type
        return TRANSFER if "ton_transfer_data" in self.columns else CALL


def make_actions(blocks: Sequence[Block]) -> Iterator[ActionRow]:
    """Yield the actions of top blocks and of the visible blocks inside them."""
    requests = {
        block.nodes[0]: name_action(block.nodes[0].key, GASLESS)
        for block in blocks
        if block.type == GASLESS
    }
    for top in blocks:
        todo: list[tuple[Block, bytes | None, list[str]]] = [(top, None, [])]
        while todo:
            block, parent, ancestors = todo.pop()
            is_hidden = block.type == CALL and None in {block["source"], block["destination"]}
            if is_hidden or (parent is not None and block.type in MARKERS):
                continue  # external messages and logs are never actions
            action = make_action(block)
            action.parent_action_id, action.ancestor_type = parent, ancestors
            if requests:
                _link(action, block, requests)
            yield action
            if block.type not in V1_BLOCKS:
                inside = [block.served, *ancestors]
                todo += [(child, action.action_id, inside) for child in block.children]


def _link(action: ActionRow, block: Block, requests: Mapping[Node, bytes]) -> None:
    """Set the gasless request, by its message, of which an action is a part or a consequence."""
    first = min(block.all_nodes(), key=lambda node: node.start_lt)
    request = None if block.type in {GASLESS, CALL} else requests.get(first)
    if request is None and first.parent is not None:
        request = requests.get(first.parent)
    if request is not None:
        extra = action.columns.get(EXTRA, {}) | {"parent_gasless_action": _encode(request)}
        action.columns = {**action.columns, EXTRA: extra}


def make_action(block: Block, *, is_ghost: bool = False) -> ActionRow:
    """Return the action of a block; the destinations of a ghost are not accounts of it."""
    nodes = list(block.all_nodes()) if block.children else block.nodes
    first = min(nodes, key=_START_LT)
    ends = {node.transaction.tx_hash: node.transaction for node in nodes}
    transactions = ends
    if block.initiator is not None:
        initiator = block.initiator.transaction
        transactions = {initiator.tx_hash: initiator, **ends}
    accounts = {each.account for each in transactions.values()}
    find = block.columns.get
    accounts.update(find(name) or "" for name in (_SOURCES if is_ghost else _ACCOUNTS))
    accounts.update(block.extra_accounts)
    accounts.discard("")
    last = max(ends.values(), key=_LT) if len(ends) > 1 else first.transaction
    return ActionRow(
        action_id=name_action(first.key, block.type),
        type=block.served,
        success=not block.failed,
        start_lt=first.start_lt,
        end_lt=last.lt,
        start_utime=min([node.start_utime for node in nodes]),
        end_utime=max([each.now for each in ends.values()]),
        mc_seqno_end=max([each.mc_seqno for each in ends.values()]),
        tx_hashes=sorted(transactions),
        accounts=sorted(accounts),
        columns=block.columns,
        rule=block.rule,
        is_broken=block.is_broken,
    )


def name_action(key: bytes, block_type: str) -> bytes:
    """Return the id of an action from the hash of its first message and its block type."""
    return sha256(b2a_base64(key, newline=False) + block_type.encode()).digest()


def make_unknown(trace: Trace) -> ActionRow:
    """Return the action of a trace without any other action."""
    transactions = trace.transactions
    return ActionRow(
        action_id=trace.trace_id,
        type="unknown",
        success=not any(each.aborted for each in transactions),
        start_lt=min(each.lt for each in transactions),
        end_lt=trace.end_lt,
        start_utime=min(each.now for each in transactions),
        end_utime=trace.end_utime,
        mc_seqno_end=trace.mc_seqno_end,
        tx_hashes=sorted(each.tx_hash for each in transactions),
        accounts=sorted({each.account for each in transactions} - {""}),
        columns={},
        rule="unknown",
    )


def show_actions(trace: Trace, actions: Sequence[ActionRow]) -> list[dict[str, Any]]:
    """Return actions as JSON objects in order of time, without columns that have no value."""
    ordered = sorted(actions, key=lambda each: (each.start_lt, each.type, _encode(each.action_id)))
    return [_show(trace, action) for action in ordered]


def _show(trace: Trace, action: ActionRow) -> dict[str, Any]:
    """Return a row of TON Center's table, which has no normalized hash for unknown traces."""
    is_unknown = action.type == "unknown"
    shown: dict[str, Any] = {
        **{name: getattr(action, name) for name in ActionRow.__struct_fields__[:10]},
        "action_id": _encode(action.action_id),
        "type": action.kept_type,
        "tx_hashes": [_encode(tx_hash) for tx_hash in action.tx_hashes],
        "trace_id": _encode(trace.trace_id),
        "trace_external_hash": _encode(trace.external_hash),
        "trace_external_hash_norm": None if is_unknown else _encode(trace.external_hash_norm),
        "trace_end_lt": trace.end_lt,
        "trace_end_utime": trace.end_utime,
        "trace_mc_seqno_end": trace.mc_seqno_end,
        "value_extra_currencies": {},
        **action.columns,
    }
    if action.parent_action_id is not None:
        shown["parent_action_id"] = _encode(action.parent_action_id)
        shown["ancestor_type"] = action.ancestor_type
    return {name: value for name, value in shown.items() if value is not None}


def _encode(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


_TEXTS = (
    *("source", "source_secondary", "destination", "destination_secondary"),
    *("asset", "asset_secondary", "asset2", "asset2_secondary"),
)
_MAX_AMOUNT = 10**38 - 1
_DETAILS = ("_data", "extra")
"""Suffixes of the columns that are stored in ``details``."""

Values = tuple[Any, ...]
"""A row of ``actions``."""


def list_rows(trace: Trace, actions: Iterable[ActionRow]) -> Iterator[Values]:
    """Yield the actions of one trace as rows."""
    shared = (*_read_trace(trace), CLASSIFIER_VERSION)
    seen = set()
    for action in actions:
        if action.action_id not in seen:
            seen.add(action.action_id)
            yield _in_order(_make_row(action) + shared)


def make_tables(rows: Sequence[Values]) -> dict[str, pa.Table]:
    """Return the rows of every table derived from actions, by name."""
    actions = make_rows(ACTIONS, rows)
    return {
        ACTIONS.name: actions,
        ACTION_ACCOUNTS.name: _list_accounts(actions),
        DEX_SWAPS.name: make_rows(DEX_SWAPS, [*map(_make_swap, _find(rows, {"jetton_swap"}))]),
        NFT_SALES_EVENTS.name: make_rows(NFT_SALES_EVENTS, [*map(_make_sale, _find(rows, SALES))]),
    }


def _find(rows: Iterable[Values], types: Collection[str]) -> Iterator[Row]:
    """Yield the rows of some types."""
    for row in rows:
        if row[_TYPE] in types:
            yield dict(zip(ACTIONS.names, row, strict=True))


def _make_row(action: ActionRow) -> Values:
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
        _write_json(currencies) if currencies else None,
        _write_json(details) if details else None,
    )


_FROM_ACTION = (
    *("action_id", "type", "success", "start_lt", "end_lt", "start_utime", "end_utime"),
    *("mc_seqno_end", "tx_hashes", "accounts", "parent_action_id", "ancestor_type", "rule"),
)
_NAMES = (
    *(*_FROM_ACTION, *_TEXTS),
    *("opcode", "amount", "value", "value_extra_currencies", "details"),
    *("trace_id", "mc_seqno", "trace_end_lt", "trace_end_utime"),
    *("trace_external_hash", "trace_external_hash_norm", "classifier_version"),
)
"""Columns of ``actions`` in the order of their values: action, trace, classifier version."""
_in_order = itemgetter(*map(_NAMES.index, ACTIONS.names))
_TYPE = ACTIONS.names.index("type")

_read_action = attrgetter(*_FROM_ACTION)
_read_trace = attrgetter(
    *("trace_id", "mc_seqno_end", "end_lt", "end_utime", "external_hash", "external_hash_norm")
)


def _write_json(value: object) -> str:
    """Return JSON; integers beyond the precision of doubles stay exact."""
    return msgspec.json.encode(value).decode()


def _fit(amount: int | None) -> int | None:
    """Return an amount; None if it exceeds any coins, as when a body has another layout."""
    return amount if amount is not None and abs(amount) <= _MAX_AMOUNT else None


_OWN = ("workchain", "account")
"""The first columns of ``action_accounts``; the others are those of the action."""


def _list_accounts(actions: pa.Table) -> pa.Table:
    """Return a row for each account of each action."""
    if not actions.num_rows:
        return ACTION_ACCOUNTS.empty
    accounts = actions["accounts"].combine_chunks()
    own = [*map(_read_address, accounts.flatten().to_pylist())]
    columns = [
        pa.array([each[at] for each in own], ACTION_ACCOUNTS.arrow.field(name).type)
        for at, name in enumerate(_OWN)
    ]
    copied = actions.select(ACTION_ACCOUNTS.names[len(_OWN) :])
    columns += copied.take(accounts.value_parent_indices()).columns
    return pa.table(columns, schema=ACTION_ACCOUNTS.arrow)


@lru_cache(1 << 12)
def _read_address(address: str) -> tuple[int, bytes]:
    workchain, _, account = address.partition(":")
    return int(workchain), bytes.fromhex(account)


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
