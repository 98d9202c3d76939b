"""Operations about domains, vesting wallets, and multisig wallets and their orders."""

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec

from tonlake.api.chain.cells import write_depth_first
from tonlake.api.errors import RequestInvalid
from tonlake.api.request.call import Addresses, Call, Flag, Int32, OneAddress, Text
from tonlake.api.text.encoding import Address, parse_address
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.layout.field import Base64, Column, Decimal, Kind, RawAddress, Read, account
from tonlake.api.v3.page.book import write_address_book
from tonlake.api.v3.page.history import name_addresses, read_contracts
from tonlake.api.v3.page.listed import find_addresses, list_addresses, render_rows
from tonlake.api.v3.page.operation import Page, SortedPage, operation
from tonlake.api.v3.resource.answer import AddressBook
from tonlake.api.v3.resource.order import OrderAction, read_order
from tonlake.queries.reader import Row

DOMAIN = re.compile(r"[^\s/]+\.[^\s/.]+")
"""Text that may be a domain and is not an address."""


class RecordsQuery(Page, frozen=True, kw_only=True):
    """Domains that point to a wallet, or one domain by name."""

    wallet: OneAddress = None
    domain: Text = None
    mc_seqno: Int32 = None


class DNSRecord(msgspec.Struct, gc=False):
    """A domain and its records (TEP-81); bag ids are hex."""

    nft_item_address: Annotated[RawAddress, account()]
    nft_item_owner: Annotated[RawAddress, account("owner")] | None
    domain: str
    dns_next_resolver: Annotated[RawAddress, account("next_resolver")] | None
    dns_wallet: Annotated[RawAddress, account("wallet")] | None
    dns_site_adnl: Annotated[Base64, Column("site_adnl")] | None
    dns_storage_bag_id: (
        Annotated[str, Column("storage_bag_id"), Read(lambda data: data.hex().upper())] | None
    )


class DNSRecords(msgspec.Struct):
    """A page of domains."""

    records: list[DNSRecord]
    address_book: AddressBook


def get_records(call: Call, query: RecordsQuery) -> DNSRecords:
    """List domains, shortest first."""
    if query.wallet is None and not query.domain:
        raise RequestInvalid("either wallet address or domain is required")
    if query.wallet is not None and query.domain:
        raise RequestInvalid("provide either wallet address or domain, not both")
    rows = read_contracts(
        call,
        "dns_records",
        **name_addresses("wallet", () if query.wallet is None else (query.wallet,)),
        domain=query.domain or None,
        **query.filters(),
    )
    shown = render_rows(DNSRecord, rows)
    return DNSRecords(shown, write_address_book(call, list_addresses(DNSRecord, rows)))


class VestingQuery(Page, frozen=True, kw_only=True):
    """Vesting wallets by address, or by owner, sender and, if requested, whitelisted address."""

    contract_address: Addresses = ()
    wallet_address: Addresses = ()
    check_whitelist: Flag = None
    mc_seqno: Int32 = None


class VestingInfo(msgspec.Struct, gc=False):
    """A vesting wallet: schedule, owner and whitelist."""

    address: Annotated[RawAddress, account()]
    start_time: int | None
    total_duration: int | None
    unlock_period: int | None
    cliff_duration: int | None
    sender_address: Annotated[RawAddress, account("sender")] | None
    owner_address: Annotated[RawAddress, account("owner")] | None
    total_amount: Decimal | None
    whitelist: Annotated[list[str], Read(list)]


class VestingContracts(msgspec.Struct):
    """A page of vesting wallets."""

    vesting_contracts: list[VestingInfo]
    address_book: AddressBook


def get_vesting(call: Call, query: VestingQuery) -> VestingContracts:
    """List vesting wallets, in order of first appearance."""
    if not (query.contract_address or query.wallet_address):
        raise RequestInvalid("at least one of contract_address or wallet_address is required")
    if query.contract_address and query.wallet_address:
        raise RequestInvalid("only one of contract_address or wallet_address should be specified")
    listed = query.wallet_address if query.check_whitelist else ()
    rows = read_contracts(
        call,
        "vesting_contracts",
        query.contract_address,
        **name_addresses("owner", query.wallet_address),
        listed=[str(address) for address in listed],
        **query.filters(),
    )
    named = list_addresses(VestingInfo, rows)
    named |= {parse_address(text) for row in rows for text in row["whitelist"]}
    return VestingContracts(render_rows(VestingInfo, rows), write_address_book(call, named))


class MultisigsQuery(SortedPage, frozen=True, kw_only=True):
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
    order_boc: Annotated[str, Read(write_depth_first)] | None
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


class Multisigs(msgspec.Struct):
    """A page of multisig wallets."""

    multisigs: list[Multisig]
    address_book: AddressBook


class MultisigOrders(msgspec.Struct):
    """A page of orders."""

    orders: list[MultisigOrder]
    address_book: AddressBook


def get_multisigs(call: Call, query: MultisigsQuery) -> Multisigs:
    """List multisig wallets with their orders, newest first."""
    if not (query.address or query.wallet_address):
        raise RequestInvalid("At least one of address or wallet_address should be specified")
    members = [str(address) for address in query.wallet_address]
    rows = read_contracts(
        call, "multisig_wallets", query.address, members=members, **query.filters()
    )
    included = query.include_orders is not False
    orders = _read_orders_of(call, rows, query) if rows and included else []
    of_wallet: dict[Address, list[MultisigOrder]] = {}
    for row, order in zip(orders, render_rows(MultisigOrder, orders), strict=True):
        of_wallet.setdefault(Address(row["multisig_workchain"], row["multisig"]), []).append(order)
    build = make_builder(Multisig)
    wallets = []
    for row in rows:
        own = of_wallet.get(Address(row["workchain"], row["account"]))
        wallets.append(build((row,), orders=own if included else []))
    named = list_addresses(Multisig, rows) | list_addresses(MultisigOrder, orders)
    for row in (*rows, *orders):
        texts = (*(row["signers"] or ()), *(row.get("proposers") or ()))
        named.update(map(parse_address, texts))
    return Multisigs(wallets, write_address_book(call, named))


def get_orders(call: Call, query: OrdersQuery) -> MultisigOrders:
    """List multisig orders, newest first."""
    if not (query.address or query.multisig_address):
        raise RequestInvalid("At least one of address or multisig_address should be specified")
    owners = name_addresses("multisig", query.multisig_address)
    rows = read_contracts(call, "multisig_orders", query.address, **owners, **query.filters())
    orders = render_rows(MultisigOrder, rows)
    if query.parse_actions:
        for order, row in zip(orders, rows, strict=True):
            order.actions = None if row["order_boc"] is None else read_order(row["order_boc"])
    named = find_addresses(orders)
    return MultisigOrders(orders, write_address_book(call, named))


def _read_orders_of(call: Call, wallets: Sequence[Row], query: MultisigsQuery) -> list[Row]:
    """Return the orders of these wallets; beyond the page limit they are cut with a warning."""
    most = call.settings.http.max_limit
    owners = [Address(row["workchain"], row["account"]) for row in wallets]
    rows = call.reader.rows(
        "v3/multisig_orders",
        **name_addresses("multisig", owners),
        mc_seqno=query.mc_seqno,
        descending=query.descending,
        limit=most + 1,
    )
    if len(rows) > most:
        call.warn(f"only {most} orders are shown; ask /multisig/orders for the others")
    return rows[:most]


routes = [
    operation("/dns/records", RecordsQuery, get_records),
    operation("/vesting", VestingQuery, get_vesting),
    operation("/multisig/wallets", MultisigsQuery, get_multisigs),
    operation("/multisig/orders", OrdersQuery, get_orders),
]
