"""The operation about vesting wallets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import Addresses, Flag, Int32
from tonlake.api.text.address import Address, parse_address, render_raw
from tonlake.api.text.encoding import encode_account, encode_number
from tonlake.api.v3.page.book import read_address_book
from tonlake.api.v3.page.history import name_addresses, read_contracts
from tonlake.api.v3.page.operation import Page, operation
from tonlake.api.v3.resource.answer import AddressBook
from tonlake.api.v3.resource.jetton import list_addresses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tonlake.api.request.call import Call

Row = dict[str, Any]


class VestingQuery(Page, frozen=True, kw_only=True):
    """Vesting wallets by address, or by owner, sender and, if wanted, listed address."""

    contract_address: Addresses = ()
    wallet_address: Addresses = ()
    check_whitelist: Flag = None
    mc_seqno: Int32 = None


class VestingInfo(msgspec.Struct, gc=False):
    """A vesting wallet: schedule, owner and whitelist."""

    address: str
    start_time: int | None
    total_duration: int | None
    unlock_period: int | None
    cliff_duration: int | None
    sender_address: str | None
    owner_address: str | None
    total_amount: str | None
    whitelist: list[str]


class VestingContracts(msgspec.Struct):
    """A page of vesting wallets."""

    vesting_contracts: list[VestingInfo]
    address_book: AddressBook


def get_vesting(call: Call, query: VestingQuery) -> VestingContracts:
    """List vesting wallets, in order of first appearance.

    Raises:
        RequestInvalid: not exactly one of contract_address and wallet_address.
        NotDerived, NotCovered: the lake does not know.
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
    return VestingContracts(
        vesting_contracts=[_render_vesting(row) for row in rows],
        address_book=read_address_book(call, {item for row in rows for item in _list_all(row)}),
    )


def _list_all(row: Row) -> Iterator[Address]:
    yield from list_addresses(row, "sender", "owner")
    yield from map(parse_address, row["whitelist"])


def _render_vesting(row: Row) -> VestingInfo:
    return VestingInfo(
        address=render_raw(row["workchain"], row["account"]),
        start_time=row["start_time"],
        total_duration=row["total_duration"],
        unlock_period=row["unlock_period"],
        cliff_duration=row["cliff_duration"],
        sender_address=encode_account(row["sender_workchain"], row["sender"]),
        owner_address=encode_account(row["owner_workchain"], row["owner"]),
        total_amount=encode_number(row["total_amount"]),
        whitelist=row["whitelist"],
    )


routes = [operation("/vesting", VestingQuery, get_vesting)]
