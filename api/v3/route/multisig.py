"""Operations about multisig wallets and their orders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import Addresses, Flag, Int32
from tonlake.api.text.address import Address, parse_address
from tonlake.api.v3.page.book import read_address_book
from tonlake.api.v3.page.history import name_addresses, read_contracts
from tonlake.api.v3.page.operation import SortedPage, operation
from tonlake.api.v3.resource.answer import AddressBook
from tonlake.api.v3.resource.multisig import Multisig, MultisigOrder, render_multisig, render_order
from tonlake.api.v3.resource.order_action import read_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tonlake.api.request.call import Call

Row = dict[str, Any]


class WalletsQuery(SortedPage, frozen=True, kw_only=True):
    """Multisig wallets by address, or by a signer or proposer."""

    address: Addresses = ()
    wallet_address: Addresses = ()
    include_orders: Flag = None
    mc_seqno: Int32 = None


class OrdersQuery(SortedPage, frozen=True, kw_only=True):
    """Orders by address, or by their multisig wallet."""

    address: Addresses = ()
    multisig_address: Addresses = ()
    parse_actions: Flag = None
    mc_seqno: Int32 = None


class Multisigs(msgspec.Struct):
    """A page of multisig wallets."""

    multisigs: list[Multisig]
    address_book: AddressBook


class MultisigOrders(msgspec.Struct):
    """A page of orders."""

    orders: list[MultisigOrder]
    address_book: AddressBook


def get_wallets(call: Call, query: WalletsQuery) -> Multisigs:
    """List multisig wallets with their orders, newest first.

    Raises:
        RequestInvalid: neither address is given.
        NotDerived, NotCovered: the lake does not know.
    """
    if not (query.address or query.wallet_address):
        raise RequestInvalid("At least one of address or wallet_address should be specified")
    rows = read_contracts(
        call,
        "multisig_wallets",
        query.address,
        mc_seqno=query.mc_seqno,
        members=[str(address) for address in query.wallet_address],
        descending=query.descending,
        limit=query.limit,
        offset=query.offset,
    )
    orders: list[Row] = []
    if rows and query.include_orders is not False:
        orders = _read_orders_of(call, rows, query)
    return Multisigs(
        multisigs=[
            render_multisig(row, orders, included=query.include_orders is not False) for row in rows
        ],
        address_book=read_address_book(call, _list_addresses([*rows, *orders])),
    )


def get_orders(call: Call, query: OrdersQuery) -> MultisigOrders:
    """List multisig orders, newest first.

    Raises:
        RequestInvalid: neither address is given.
        NotDerived, NotCovered: the lake does not know.
    """
    if not (query.address or query.multisig_address):
        raise RequestInvalid("At least one of address or multisig_address should be specified")
    rows = read_contracts(
        call,
        "multisig_orders",
        query.address,
        mc_seqno=query.mc_seqno,
        **name_addresses("multisig", query.multisig_address),
        descending=query.descending,
        limit=query.limit,
        offset=query.offset,
    )
    orders = [render_order(row) for row in rows]
    if query.parse_actions:
        for order, row in zip(orders, rows, strict=True):
            order.actions = None if row["order_boc"] is None else read_order(row["order_boc"])
    return MultisigOrders(
        orders=orders, address_book=read_address_book(call, _list_addresses(rows))
    )


def _read_orders_of(call: Call, wallets: Sequence[Row], query: WalletsQuery) -> list[Row]:
    """Return the orders of these wallets; more than a page may have are left out with a warning."""
    most = call.settings.http.max_limit
    owners = [Address(row["workchain"], row["account"]) for row in wallets]
    rows = call.reader.rows(
        "v3/multisig_orders",
        workchains=[],
        accounts=[],
        **name_addresses("multisig", owners),
        mc_seqno=query.mc_seqno,
        descending=query.descending,
        limit=most + 1,
    )
    if len(rows) > most:
        call.warn(f"only {most} orders are shown; ask /multisig/orders for the others")
    return rows[:most]


def _list_addresses(rows: Iterable[Row]) -> Iterator[Address]:
    for row in rows:
        yield Address(row["workchain"], row["account"])
        if "multisig" in row:
            yield Address(row["multisig_workchain"], row["multisig"])
        yield from map(parse_address, row["signers"] or ())
        yield from map(parse_address, row.get("proposers") or ())


routes = [
    operation("/multisig/wallets", WalletsQuery, get_wallets),
    operation("/multisig/orders", OrdersQuery, get_orders),
]
