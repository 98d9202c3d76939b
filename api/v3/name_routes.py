"""The operation about domains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from api.address import render_raw
from api.encoding import encode_account
from api.errors import RequestInvalid
from api.params import Int32, OneAddress, Text
from api.v3.answer import AddressBook
from api.v3.book import read_address_book
from api.v3.history import name_addresses, read_contracts
from api.v3.jetton import list_addresses
from api.v3.operation import Page, operation

if TYPE_CHECKING:
    from api.call import Call

Row = dict[str, Any]


class RecordsQuery(Page, frozen=True, kw_only=True):
    """Domains that point to a wallet, or one by its name."""

    wallet: OneAddress = None
    domain: Text = None
    mc_seqno: Int32 = None


class DNSRecord(msgspec.Struct, gc=False):
    """A domain and its records (TEP-81); ADNL addresses and bag ids are hex."""

    nft_item_address: str
    nft_item_owner: str | None
    domain: str
    dns_next_resolver: str | None
    dns_wallet: str | None
    dns_site_adnl: str | None
    dns_storage_bag_id: str | None


class DNSRecords(msgspec.Struct):
    """A page of domains."""

    records: list[DNSRecord]
    address_book: AddressBook


def get_records(call: Call, query: RecordsQuery) -> DNSRecords:
    """List domains, shortest first.

    Raises:
        RequestInvalid: not exactly one of wallet and domain.
        NotDerived, NotCovered: the lake does not know.
    """
    if query.wallet is None and not query.domain:
        raise RequestInvalid("either wallet address or domain is required")
    if query.wallet is not None and query.domain:
        raise RequestInvalid("provide either wallet address or domain, not both")
    rows = read_contracts(
        call,
        "dns_records",
        mc_seqno=query.mc_seqno,
        **name_addresses("wallet", () if query.wallet is None else (query.wallet,)),
        domain=query.domain or None,
        limit=query.limit,
        offset=query.offset,
    )
    names = ("owner", "next_resolver", "wallet")
    named = {address for row in rows for address in list_addresses(row, *names)}
    return DNSRecords(
        records=[_render_record(row) for row in rows],
        address_book=read_address_book(call, named),
    )


def _render_record(row: Row) -> DNSRecord:
    return DNSRecord(
        nft_item_address=render_raw(row["workchain"], row["account"]),
        nft_item_owner=encode_account(row["owner_workchain"], row["owner"]),
        domain=row["domain"],
        dns_next_resolver=encode_account(row["next_resolver_workchain"], row["next_resolver"]),
        dns_wallet=encode_account(row["wallet_workchain"], row["wallet"]),
        dns_site_adnl=_encode_hex(row["site_adnl"]),
        dns_storage_bag_id=_encode_hex(row["storage_bag_id"]),
    )


def _encode_hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex().upper()


routes = [operation("/dns/records", RecordsQuery, get_records)]
