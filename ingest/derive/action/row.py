"""Converts top blocks to actions.

Actions of types that old clients know hide their parts; all others show them, as separate actions
that name their ancestors.
"""

from __future__ import annotations

import base64
from binascii import b2a_base64
from hashlib import sha256
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.ingest.derive.action.block import (
    CALL,
    CURRENCY_TRANSFER,
    GASLESS,
    MARKERS,
    TRANSFER,
    Block,
)
from tonlake.ingest.derive.action.version import V1_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tonlake.ingest.derive.action.model import Trace
    from tonlake.ingest.derive.action.node import Node

_START_LT, _LT = attrgetter("start_lt"), attrgetter("lt")
_SOURCES = ("source", "source_secondary")
_ACCOUNTS = (*_SOURCES, "destination", "destination_secondary")
EXTRA = "extra"
"""Column of facts added by later rules, by name."""


class Action(msgspec.Struct, kw_only=True):
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


def make_actions(blocks: Sequence[Block]) -> Iterator[Action]:
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
            if _is_hidden(block) or (parent is not None and block.type in MARKERS):
                continue
            action = make_action(block)
            action.parent_action_id, action.ancestor_type = parent, ancestors
            if requests:
                _link(action, block, requests)
            yield action
            if block.type not in V1_BLOCKS:
                inside = [block.served, *ancestors]
                todo += [(child, action.action_id, inside) for child in block.children]


def _link(action: Action, block: Block, requests: Mapping[Node, bytes]) -> None:
    """Set the gasless request, by its message, of which an action is a part or a consequence."""
    first = min(block.all_nodes(), key=lambda node: node.start_lt)
    request = None if block.type in {GASLESS, CALL} else requests.get(first)
    if request is None and first.parent is not None:
        request = requests.get(first.parent)
    if request is not None:
        extra = action.columns.get(EXTRA, {}) | {"parent_gasless_action": _encode(request)}
        action.columns = {**action.columns, EXTRA: extra}


def make_action(block: Block, *, is_ghost: bool = False) -> Action:
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
    for name in _SOURCES if is_ghost else _ACCOUNTS:
        accounts.add(find(name) or "")
    accounts.update(block.extra_accounts)
    accounts.discard("")
    last = max(ends.values(), key=_LT) if len(ends) > 1 else first.transaction
    return Action(
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


def make_unknown(trace: Trace) -> Action:
    """Return the action of a trace without any other action."""
    transactions = trace.transactions
    return Action(
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


def show_actions(trace: Trace, actions: Sequence[Action]) -> list[dict[str, Any]]:
    """Return actions as JSON objects in order of time, without columns that have no value."""
    ordered = sorted(actions, key=lambda each: (each.start_lt, each.type, _encode(each.action_id)))
    return [_show(trace, action) for action in ordered]


def _show(trace: Trace, action: Action) -> dict[str, Any]:
    """Return a row of TON Center's table, which has no normalized hash for unknown traces."""
    is_unknown = action.type == "unknown"
    shown: dict[str, Any] = {
        "action_id": _encode(action.action_id),
        "type": action.kept_type,
        "success": action.success,
        "start_lt": action.start_lt,
        "end_lt": action.end_lt,
        "start_utime": action.start_utime,
        "end_utime": action.end_utime,
        "mc_seqno_end": action.mc_seqno_end,
        "tx_hashes": [_encode(tx_hash) for tx_hash in action.tx_hashes],
        "accounts": action.accounts,
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


def _is_hidden(block: Block) -> bool:
    """Return whether a block is never an action: an external message, or a log."""
    return block.type == CALL and None in {
        block.columns.get("source"),
        block.columns.get("destination"),
    }
