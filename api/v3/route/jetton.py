"""Operations about jettons: masters, wallets, transfers and burns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import Addresses, Flag, Int32, OneAddress, Text
from tonlake.api.v3.layout.body import Payload, decode_content, decode_payload
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
from tonlake.api.v3.page.book import pair_addresses
from tonlake.api.v3.page.history import name_addresses, read_contracts, read_moves
from tonlake.api.v3.page.listed import describe, list_addresses, render_moves, render_rows
from tonlake.api.v3.page.operation import Page, SortedPage, SpanPage, operation
from tonlake.api.v3.resource.answer import AddressBook, Metadata

if TYPE_CHECKING:
    from tonlake.api.request.call import Call


class MastersQuery(Page, frozen=True, kw_only=True):
    """Masters by address and administrator, combined by AND."""

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


class MovesQuery(SpanPage, frozen=True, kw_only=True):
    """Filters of transfers and burns; ``address`` is an alias of owner_address."""

    owner_address: Addresses = ()
    address: Addresses = ()
    jetton_wallet: Addresses = ()
    jetton_master: OneAddress = None


class TransfersQuery(MovesQuery, frozen=True, kw_only=True):
    """Filters of transfers; ``direction`` is relative to the owners: in, or else out."""

    direction: Text = None


class BurnsQuery(MovesQuery, frozen=True, kw_only=True):
    """Filters of burns."""


class JettonMaster(msgspec.Struct, gc=False):
    """A jetton master: supply, administrator and TEP-64 content."""

    address: Annotated[RawAddress, account()]
    total_supply: Decimal
    mintable: bool
    admin_address: Annotated[RawAddress, account("admin")] | None
    jetton_content: Annotated[dict[str, object], Column("content"), Read(decode_content)] | None
    jetton_wallet_code_hash: Annotated[Base64, Column("wallet_code_hash")]
    code_hash: Base64 | None
    data_hash: Base64 | None
    last_transaction_lt: Annotated[Decimal, Column("lt")]


class JettonWallet(msgspec.Struct, gc=False):
    """A jetton wallet; the balance is in the smallest unit."""

    address: Annotated[RawAddress, account()]
    balance: Decimal
    owner: Annotated[RawAddress, account("owner")] | None
    jetton: Annotated[RawAddress, account("jetton")]
    last_transaction_lt: Annotated[Decimal, Column("lt")]
    code_hash: Base64 | None
    data_hash: Base64 | None


class JettonTransfer(msgspec.Struct, gc=False):
    """A transfer, as requested from the sender's jetton wallet."""

    query_id: Decimal
    source: Annotated[RawAddress, account("source")] | None
    destination: Annotated[RawAddress, account("destination")] | None
    amount: Decimal
    source_wallet: Annotated[RawAddress, account()]
    jetton_master: Annotated[RawAddress, account("jetton")]
    transaction_hash: Annotated[Base64, Column("tx_hash")]
    transaction_lt: Annotated[Decimal, Column("lt")]
    transaction_now: Annotated[int, Column("now")]
    transaction_aborted: Annotated[bool, Column("aborted")]
    response_destination: Annotated[RawAddress, account("response_destination")] | None
    custom_payload: Bag | None
    decoded_custom_payload: (
        Annotated[Payload, Column("custom_payload"), Read(decode_payload)] | None
    )
    forward_ton_amount: Decimal | None
    forward_payload: Bag | None
    decoded_forward_payload: (
        Annotated[Payload, Column("forward_payload"), Read(decode_payload)] | None
    )
    trace_id: Annotated[str, Kind.EXTRA] | None


class JettonBurn(msgspec.Struct, gc=False):
    """A burn, as requested from the owner's jetton wallet."""

    query_id: Decimal
    owner: Annotated[RawAddress, account("owner")] | None
    jetton_wallet: Annotated[RawAddress, account()]
    jetton_master: Annotated[RawAddress, account("jetton")]
    transaction_hash: Annotated[Base64, Column("tx_hash")]
    transaction_lt: Annotated[Decimal, Column("lt")]
    transaction_now: Annotated[int, Column("now")]
    transaction_aborted: Annotated[bool, Column("aborted")]
    amount: Decimal
    response_destination: Annotated[RawAddress, account("response_destination")] | None
    custom_payload: Bag | None
    decoded_custom_payload: (
        Annotated[Payload, Column("custom_payload"), Read(decode_payload)] | None
    )
    trace_id: Annotated[str, Kind.EXTRA] | None


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
        NotDerived, NotCovered: the lake may lack the requested rows.
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
    shown = render_rows(JettonMaster, rows)
    return JettonMasters(shown, *describe(call, list_addresses(JettonMaster, rows)))


def get_wallets(call: Call, query: WalletsQuery) -> JettonWallets:
    """List jetton wallets.

    Raises:
        RequestInvalid: several jettons, but not exactly one owner.
        NotDerived, NotCovered: the lake may lack the requested rows.
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
    shown = render_rows(JettonWallet, rows)
    return JettonWallets(shown, *describe(call, list_addresses(JettonWallet, rows)))


def get_transfers(call: Call, query: TransfersQuery) -> JettonTransfers:
    """List jetton transfers, newest first, without aborted ones.

    Raises:
        NotDerived, NotCovered: the lake may lack the requested rows.
    """
    rows = read_moves(
        call,
        "jetton_transfers",
        query,
        **_filter_moves(query),
        incoming=query.direction in (None, "in"),
        outgoing=query.direction != "in",
    )
    moves = render_moves(call, JettonTransfer, rows)
    return JettonTransfers(moves, *describe(call, list_addresses(JettonTransfer, rows)))


def get_burns(call: Call, query: BurnsQuery) -> JettonBurns:
    """List jetton burns, newest first, including aborted ones.

    Raises:
        NotDerived, NotCovered: the lake may lack the requested rows.
    """
    rows = read_moves(call, "jetton_burns", query, **_filter_moves(query))
    moves = render_moves(call, JettonBurn, rows)
    return JettonBurns(moves, *describe(call, list_addresses(JettonBurn, rows)))


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
