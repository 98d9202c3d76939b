"""Actions of a multisig order. TL-B of multisig v2: Order, Action."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.api.v3.resource.order_body import read_body
from tonlake.api.v3.resource.order_field import Fields, encode_rest, load_address, read_message
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.errors import BocError, BodyError, DecodeError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.decode.cell.tree import CellTree

SEND_MESSAGE, UPDATE_PARAMS = 0xF1381E5B, 0x1D0CFBD3
UNKNOWN = "unknown"
_ACTION_BITS = 8
"""Bits of the keys: of an action in the order, of a signer in new parameters."""


class OrderAction(msgspec.Struct, kw_only=True):
    """One action of an order; if it cannot be decoded, ``parsed`` is false and ``error`` is set."""

    destination: str | None = None
    value: str | None = None
    body_raw: str | None = None
    parsed: bool
    error: str | None = None
    parsed_body: Fields | None = None
    parsed_body_type: str
    send_mode: int = 0


def read_order(boc: bytes) -> list[OrderAction]:
    """Return the actions of an order in the order of their numbers.

    An unreadable order is one action with an error.
    """
    try:
        tree = parse_boc(boc)
        actions = list(iter_hashmap(tree, tree.roots[0], _ACTION_BITS))
    except (BocError, DecodeError) as error:
        return [_refuse(OrderAction(parsed=False, parsed_body_type=UNKNOWN), error)]
    return [_read_action(tree, value) for _number, value in actions]


def _read_action(tree: CellTree, value: CellSlice) -> OrderAction:
    action = OrderAction(parsed=False, parsed_body_type=UNKNOWN)
    try:
        _fill_action(tree.slice(value.load_ref()), action)
    except (BocError, BodyError, DecodeError) as error:
        return _refuse(action, error)
    action.parsed = True
    return action


def _fill_action(source: CellSlice, action: OrderAction) -> None:
    kind = source.load_uint(32)
    if kind == SEND_MESSAGE:
        _read_sending(source, action)
    elif kind == UPDATE_PARAMS:
        action.parsed_body = _read_new_params(source)
        action.parsed_body_type = "multisig_update_params"
    else:
        raise BodyError(f"an order has no action 0x{kind:08x}")


def _refuse(action: OrderAction, error: Exception) -> OrderAction:
    action.error = str(error)
    return action


def _read_sending(source: CellSlice, action: OrderAction) -> None:
    action.send_mode = source.load_uint(8)
    message = read_message(source.tree.slice(source.load_ref()))
    action.destination, action.value = message.destination, message.value
    action.body_raw = encode_rest(message.body)
    action.parsed_body_type, action.parsed_body = read_body(message.body)


def _read_new_params(source: CellSlice) -> Fields:
    threshold = source.load_uint(8)
    signers = source.load_ref()
    proposers = source.load_maybe_ref()
    return {
        "new_threshold": threshold,
        "new_signers": _read_addresses(source.tree, signers),
        "new_proposers": [] if proposers is None else _read_addresses(source.tree, proposers),
    }


def _read_addresses(tree: CellTree, root: int) -> list[str | None]:
    return [load_address(value) for _number, value in iter_hashmap(tree, root, _ACTION_BITS)]
