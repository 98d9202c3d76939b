"""The address book of an answer: each address as people write it, and what its contract is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api.address import Address, render_friendly
from api.errors import AddressInvalid
from api.v3.answer import AddressBook, AddressBookRow
from api.v3.interface import name_interfaces
from api.wallet import WALLETS
from queries.exact import find_states

if TYPE_CHECKING:
    from collections.abc import Iterable

    from api.call import Call

Row = dict[str, Any]


def read_accounts(call: Call, addresses: Iterable[Address]) -> dict[Address, Row]:
    """Return the newest state of each account that the lake knows, by workchain and account."""
    wanted = sorted(set(addresses))
    if not wanted:
        return {}
    states = find_states(call.reader, [(item.workchain, item.account) for item in wanted])
    return {Address(*account): row for account, row in states.items()}


def pair_addresses(addresses: Iterable[Address]) -> dict[str, list[Any]]:
    """Return the two list parameters that queries take for a list of accounts."""
    listed = list(addresses)
    return {
        "workchains": [address.workchain for address in listed],
        "accounts": [address.account for address in listed],
    }


def read_address_book(call: Call, addresses: Iterable[Address]) -> AddressBook:
    """Return the book of these addresses under their raw forms; {} if the request wants none."""
    if call.no_address_book:
        return {}
    wanted = sorted(set(addresses))
    accounts = read_accounts(call, wanted)
    return {
        str(address): describe_address(address, accounts.get(address), test_only=call.test_only)
        for address in wanted
    }


def describe_address(address: Address, account: Row | None, *, test_only: bool) -> AddressBookRow:
    """Return one row of the book; ``account`` is the newest state, None where it is unknown.

    Contracts are written bounceable; wallets, and accounts without code, are not.
    """
    code_hash = None if account is None else account["code_hash"]
    bounceable = code_hash is not None and code_hash not in WALLETS
    try:
        friendly = render_friendly(address, bounceable=bounceable, test_only=test_only)
    except AddressInvalid:
        friendly = None  # A workchain beyond 8 bits has only the raw form.
    return AddressBookRow(
        user_friendly=friendly,
        domain=None,
        interfaces=[] if account is None else name_interfaces(code_hash),
    )
