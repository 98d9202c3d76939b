"""The operation about domains."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import Int32, OneAddress, Text
from tonlake.api.v3.layout.field import Base64, Column, RawAddress, Read, account
from tonlake.api.v3.page.book import read_address_book
from tonlake.api.v3.page.history import name_addresses, read_contracts
from tonlake.api.v3.page.listed import list_addresses, render_rows
from tonlake.api.v3.page.operation import Page, operation
from tonlake.api.v3.resource.answer import AddressBook

if TYPE_CHECKING:
    from tonlake.api.request.call import Call


DOMAIN = re.compile(r"[^\s/]+\.[^\s/.]+")
"""Text that may be a domain and is not an address."""


class RecordsQuery(Page, frozen=True, kw_only=True):
    """Domains that point to a wallet, or one domain by name."""

    wallet: OneAddress = None
    domain: Text = None
    mc_seqno: Int32 = None


def _encode_hex(data: bytes) -> str:
    return data.hex().upper()


class DNSRecord(msgspec.Struct, gc=False):
    """A domain and its records (TEP-81); bag ids are hex."""

    nft_item_address: Annotated[RawAddress, account()]
    nft_item_owner: Annotated[RawAddress, account("owner")] | None
    domain: str
    dns_next_resolver: Annotated[RawAddress, account("next_resolver")] | None
    dns_wallet: Annotated[RawAddress, account("wallet")] | None
    dns_site_adnl: Annotated[Base64, Column("site_adnl")] | None
    dns_storage_bag_id: Annotated[str, Column("storage_bag_id"), Read(_encode_hex)] | None


class DNSRecords(msgspec.Struct):
    """A page of domains."""

    records: list[DNSRecord]
    address_book: AddressBook


def get_records(call: Call, query: RecordsQuery) -> DNSRecords:
    """List domains, shortest first.

    Raises:
        RequestInvalid: not exactly one of wallet and domain.
        NotDerived, NotCovered: the lake may lack the requested rows.
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
    shown = render_rows(DNSRecord, rows)
    return DNSRecords(shown, read_address_book(call, list_addresses(DNSRecord, rows)))


routes = [operation("/dns/records", RecordsQuery, get_records)]
