"""Multisig wallets and their orders as version 3 writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from api.address import render_raw
from api.encoding import encode_optional
from api.v3.order_action import OrderAction
from api.v3.payload import encode_payload

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = dict[str, Any]


class MultisigOrder(msgspec.Struct):
    """An order of a multisig wallet; fields of an uninitialised one are null."""

    address: str
    multisig_address: str
    order_seqno: str | None
    threshold: int | None
    sent_for_execution: bool | None
    approvals_mask: str | None
    approvals_num: int | None
    expiration_date: int | None
    order_boc: str | None
    signers: list[str] | None
    last_transaction_lt: str
    code_hash: str | None
    data_hash: str | None
    actions: list[OrderAction] | None = None


class Multisig(msgspec.Struct):
    """A multisig wallet; ``orders`` is null if requested and there are none."""

    address: str
    next_order_seqno: str | None
    threshold: int | None
    signers: list[str]
    proposers: list[str]
    last_transaction_lt: str
    code_hash: str | None
    data_hash: str | None
    orders: list[MultisigOrder] | None


def render_multisig(row: Row, orders: Iterable[Row], *, included: bool) -> Multisig:
    """Return the wallet of a row of ``multisig_wallets``.

    Args:
        row: The row.
        orders: Rows of ``multisig_orders``, its own among them.
        included: Whether its orders were asked for.
    """
    account = row["workchain"], row["account"]
    own = [
        render_order(order)
        for order in orders
        if (order["multisig_workchain"], order["multisig"]) == account
    ]
    return Multisig(
        address=render_raw(*account),
        next_order_seqno=row["next_order_seqno"],
        threshold=row["threshold"],
        signers=row["signers"],
        proposers=row["proposers"],
        last_transaction_lt=str(row["lt"]),
        code_hash=encode_optional(row["code_hash"]),
        data_hash=encode_optional(row["data_hash"]),
        orders=(own or None) if included else [],
    )


def render_order(row: Row) -> MultisigOrder:
    """Return the order of a row of ``multisig_orders``, without its actions."""
    return MultisigOrder(
        address=render_raw(row["workchain"], row["account"]),
        multisig_address=render_raw(row["multisig_workchain"], row["multisig"]),
        order_seqno=row["order_seqno"],
        threshold=row["threshold"],
        sent_for_execution=row["sent_for_execution"],
        approvals_mask=row["approvals_mask"],
        approvals_num=row["approvals_num"],
        expiration_date=row["expiration_date"],
        order_boc=encode_payload(row["order_boc"]),
        signers=row["signers"],
        last_transaction_lt=str(row["lt"]),
        code_hash=encode_optional(row["code_hash"]),
        data_hash=encode_optional(row["data_hash"]),
    )
