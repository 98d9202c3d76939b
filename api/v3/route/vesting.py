"""The operation about vesting wallets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import Addresses, Flag, Int32
from tonlake.api.text.address import parse_address
from tonlake.api.v3.layout.field import Decimal, RawAddress, Read, account
from tonlake.api.v3.page.book import read_address_book
from tonlake.api.v3.page.history import name_addresses, read_contracts
from tonlake.api.v3.page.listed import list_addresses, render_rows
from tonlake.api.v3.page.operation import Page, operation
from tonlake.api.v3.resource.answer import AddressBook

if TYPE_CHECKING:
    from tonlake.api.request.call import Call


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
    """List vesting wallets, in order of first appearance.

    Raises:
        RequestInvalid: not exactly one of contract_address and wallet_address.
        NotDerived, NotCovered: the lake may lack the requested rows.
    """
    if not (query.contract_address or query.wallet_address):
        raise RequestInvalid("at least one of contract_address or wallet_address is required")
    if query.contract_address and query.wallet_address:
        raise RequestInvalid("only one of contract_address or wallet_address should be specified")
    listed = query.wallet_address if query.check_whitelist else ()
    rows = read_contracts(
        call,
        "vesting_contracts",
        query.contract_address,
        mc_seqno=query.mc_seqno,
        **name_addresses("owner", query.wallet_address),
        listed=[str(address) for address in listed],
        limit=query.limit,
        offset=query.offset,
    )
    named = list_addresses(VestingInfo, rows)
    named |= {parse_address(text) for row in rows for text in row["whitelist"]}
    return VestingContracts(render_rows(VestingInfo, rows), read_address_book(call, named))


routes = [operation("/vesting", VestingQuery, get_vesting)]
