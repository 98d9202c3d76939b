"""Operations about jettons: masters, wallets, transfers and burns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import Addresses, Flag, Int32, Lt, OneAddress, Text, Utime
from tonlake.api.v3.page.book import pair_addresses, read_address_book
from tonlake.api.v3.page.history import name_addresses, read_contracts, read_moves, read_trace_ids
from tonlake.api.v3.page.metadata import read_metadata
from tonlake.api.v3.page.operation import Page, SortedPage, operation
from tonlake.api.v3.resource.answer import AddressBook, Metadata
from tonlake.api.v3.resource.jetton import (
    JettonBurn,
    JettonMaster,
    JettonTransfer,
    JettonWallet,
    list_addresses,
    render_burn,
    render_master,
    render_transfer,
    render_wallet,
)

if TYPE_CHECKING:
    from tonlake.api.request.call import Call


class MastersQuery(Page, frozen=True, kw_only=True):
    """Masters by address or administrator; all that are given must hold."""

    address: Addresses = ()
    admin_address: Addresses = ()
    mc_seqno: Int32 = None


class WalletsQuery(SortedPage, frozen=True, kw_only=True):
    """Wallets by address, owner or jetton; ``sort`` orders by balance."""

    address: Addresses = ()
    owner_address: Addresses = ()
    jetton_address: Addresses = ()
    exclude_zero_balance: Flag = None
    mc_seqno: Int32 = None


class MovesQuery(SortedPage, frozen=True, kw_only=True):
    """What transfers and burns are chosen by; ``address`` is another name of owner_address."""

    owner_address: Addresses = ()
    address: Addresses = ()
    jetton_wallet: Addresses = ()
    jetton_master: OneAddress = None
    start_utime: Utime = None
    end_utime: Utime = None
    start_lt: Lt = None
    end_lt: Lt = None


class TransfersQuery(MovesQuery, frozen=True, kw_only=True):
    """Transfers; ``direction`` is seen from the owners: in, or else out."""

    direction: Text = None


class BurnsQuery(MovesQuery, frozen=True, kw_only=True):
    """Burns."""


class JettonMasters(msgspec.Struct):
    """A page of jetton masters."""

    jetton_masters: list[JettonMaster]
    address_book: AddressBook
    metadata: Metadata


class JettonWallets(msgspec.Struct):
    """A page of jetton wallets."""

    jetton_wallets: list[JettonWallet]
    address_book: AddressBook
    metadata: Metadata


class JettonTransfers(msgspec.Struct):
    """A page of transfers of jettons."""

    jetton_transfers: list[JettonTransfer]
    address_book: AddressBook
    metadata: Metadata


class JettonBurns(msgspec.Struct):
    """A page of burns of jettons."""

    jetton_burns: list[JettonBurn]
    address_book: AddressBook
    metadata: Metadata


def get_masters(call: Call, query: MastersQuery) -> JettonMasters:
    """List jetton masters, in order of first appearance.

    Raises:
        NotDerived, NotCovered: the lake does not know.
    """
    rows = read_contracts(
        call,
        "jetton_masters",
        query.address,
        mc_seqno=query.mc_seqno,
        **name_addresses("admin", query.admin_address),
        limit=query.limit,
        offset=query.offset,
    )
    named = {address for row in rows for address in list_addresses(row, "admin")}
    return JettonMasters(
        jetton_masters=[render_master(row) for row in rows],
        address_book=read_address_book(call, named),
        metadata=read_metadata(call, named),
    )


def get_wallets(call: Call, query: WalletsQuery) -> JettonWallets:
    """List jetton wallets.

    Raises:
        RequestInvalid: several jettons, but not exactly one owner.
        NotDerived, NotCovered: the lake does not know.
    """
    if len(query.jetton_address) > 1 and len(query.owner_address) != 1:
        raise RequestInvalid("exact one owner_address required for multiple jetton_address")
    rows = read_contracts(
        call,
        "jetton_wallets",
        query.address,
        mc_seqno=query.mc_seqno,
        **name_addresses("owner", query.owner_address),
        **name_addresses("jetton", query.jetton_address),
        exclude_zero=bool(query.exclude_zero_balance),
        by_account=bool(query.address),
        by_owner=bool(query.owner_address) and not query.address,
        by_balance=query.sort is not None and not query.address,
        descending=query.descending,
        limit=query.limit,
        offset=query.offset,
    )
    named = {address for row in rows for address in list_addresses(row, "owner", "jetton")}
    return JettonWallets(
        jetton_wallets=[render_wallet(row) for row in rows],
        address_book=read_address_book(call, named),
        metadata=read_metadata(call, named),
    )


def get_transfers(call: Call, query: TransfersQuery) -> JettonTransfers:
    """List jetton transfers, newest first, without aborted ones.

    Raises:
        NotDerived, NotCovered: the lake does not know.
    """
    rows = read_moves(
        call,
        "jetton_transfers",
        query,
        **_filter_moves(query),
        incoming=query.direction in (None, "in"),
        outgoing=query.direction != "in",
    )
    trace_ids = read_trace_ids(call, rows)
    names = ("jetton", "source", "destination", "response_destination")
    named = {address for row in rows for address in list_addresses(row, *names)}
    return JettonTransfers(
        jetton_transfers=[render_transfer(row, trace_ids) for row in rows],
        address_book=read_address_book(call, named),
        metadata=read_metadata(call, named),
    )


def get_burns(call: Call, query: BurnsQuery) -> JettonBurns:
    """List jetton burns, newest first, including aborted ones.

    Raises:
        NotDerived, NotCovered: the lake does not know.
    """
    rows = read_moves(call, "jetton_burns", query, **_filter_moves(query))
    trace_ids = read_trace_ids(call, rows)
    names = ("jetton", "owner", "response_destination")
    named = {address for row in rows for address in list_addresses(row, *names)}
    return JettonBurns(
        jetton_burns=[render_burn(row, trace_ids) for row in rows],
        address_book=read_address_book(call, named),
        metadata=read_metadata(call, named),
    )


def _filter_moves(query: MovesQuery) -> dict[str, object]:
    master = () if query.jetton_master is None else (query.jetton_master,)
    return {
        **pair_addresses(query.jetton_wallet),
        **name_addresses("jetton", master),
        **name_addresses("owner", (*query.owner_address, *query.address)),
    }


routes = [
    operation("/jetton/masters", MastersQuery, get_masters),
    operation("/jetton/wallets", WalletsQuery, get_wallets),
    operation("/jetton/transfers", TransfersQuery, get_transfers),
    operation("/jetton/burns", BurnsQuery, get_burns),
]
