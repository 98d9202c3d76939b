"""Multisig wallets and their orders as version 3 writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.layout.field import (
    Bag,
    Base64,
    Column,
    Decimal,
    Kind,
    RawAddress,
    Read,
    account,
)
from tonlake.api.v3.resource.order_action import OrderAction

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = dict[str, Any]


class MultisigOrder(msgspec.Struct):
    """An order of a multisig wallet; fields of an uninitialised one are null."""

    address: Annotated[RawAddress, account()]
    multisig_address: Annotated[RawAddress, account("multisig")]
    order_seqno: str | None
    threshold: int | None
    sent_for_execution: bool | None
    approvals_mask: str | None
    approvals_num: int | None
    expiration_date: int | None
    order_boc: Bag | None
    signers: Annotated[list[str], Read(list)] | None
    last_transaction_lt: Annotated[Decimal, Column("lt")]
    code_hash: Base64 | None
    data_hash: Base64 | None
    actions: list[OrderAction] | None = None


class Multisig(msgspec.Struct):
    """A multisig wallet; ``orders`` is null if requested and there are none."""

    address: Annotated[RawAddress, account()]
    next_order_seqno: str | None
    threshold: int | None
    signers: Annotated[list[str], Read(list)]
    proposers: Annotated[list[str], Read(list)]
    last_transaction_lt: Annotated[Decimal, Column("lt")]
    code_hash: Base64 | None
    data_hash: Base64 | None
    orders: Annotated[list[MultisigOrder], Kind.EXTRA] | None


def render_multisig(row: Row, orders: Iterable[Row], *, included: bool) -> Multisig:
    """Return the wallet of a row of ``multisig_wallets``.

    Args:
        row: The row.
        orders: Rows of ``multisig_orders``, its own among them.
        included: Whether its orders were asked for.
    """
    own = [
        render_order(order)
        for order in orders
        if (order["multisig_workchain"], order["multisig"]) == (row["workchain"], row["account"])
    ]
    return make_builder(Multisig)((row,), orders=(own or None) if included else [])


def render_order(row: Row) -> MultisigOrder:
    """Return the order of a row of ``multisig_orders``, without its actions."""
    return make_builder(MultisigOrder)((row,))
