"""Operations about wallets, and the two account operations with version 2 names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.chain.account import WALLETS, read_wallet_data
from tonlake.api.errors import AnswerConflict, CredentialMissing
from tonlake.api.request.params import Addresses, Flag, Int32, OneAddress, Query
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.page.book import read_accounts, read_address_book
from tonlake.api.v3.page.coverage import check_accounts_known, check_mc_seqno, is_current
from tonlake.api.v3.page.metadata import read_metadata
from tonlake.api.v3.page.operation import operation
from tonlake.api.v3.resource.answer import (
    AddressInformation,
    WalletInformation,
    WalletState,
    WalletStates,
)
from tonlake.api.v3.route.account import fetch_accounts, find_accounts, read_bodies, write_cell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.api.request.call import Call

Row = dict[str, Any]

UNKNOWN: Row = {
    "account_status": "uninit",
    "balance": 0,
    "last_trans_lt": 0,
    "last_trans_hash": bytes(32),
    "code_hash": None,
    "data_hash": None,
}
"""The state reported for an account that does not exist, as in TON Center."""


class WalletStatesQuery(Query, frozen=True, kw_only=True):
    """Accounts, and the masterchain block as of which they are read (default: newest)."""

    address: Addresses = ()
    mc_seqno: Int32 = None


class InformationQuery(Query, frozen=True, kw_only=True):
    """One account; ``use_v2`` selects one of two sources in TON Center and has no effect here."""

    address: OneAddress = None
    use_v2: Flag = None
    mc_seqno: Int32 = None


def get_wallet_states(call: Call, query: WalletStatesQuery) -> WalletStates:
    """List wallet states decoded from their data.

    Raises:
        RequestInvalid: no address.
    """
    accounts = find_accounts(call, query.address, mc_seqno=query.mc_seqno)
    wallets = [row for row in accounts.values() if row["code_hash"] in WALLETS]
    cells = read_bodies(call, wallets, columns=("data_hash",), mc_seqno=query.mc_seqno)
    build = make_builder(WalletState)
    return WalletStates(
        wallets=[
            build(
                (row,),
                address=str(address),
                is_wallet=row["code_hash"] in WALLETS,
                **_read_fields(row, cells),
            )
            for address, row in accounts.items()
        ],
        address_book=read_address_book(call, accounts),
        metadata=read_metadata(call, accounts),
    )


def get_address_information(call: Call, query: InformationQuery) -> AddressInformation:
    """Show an account.

    Raises:
        CredentialMissing: no address.
        NotCovered: the lake cannot know the account.
    """
    row = _read_account(call, query)
    cells = read_bodies(call, [row], mc_seqno=query.mc_seqno)
    return make_builder(AddressInformation)(
        (row,),
        code=write_cell(cells, row["code_hash"]),
        data=write_cell(cells, row["data_hash"]),
        frozen_hash=None,
    )


def get_wallet_information(call: Call, query: InformationQuery) -> WalletInformation:
    """Show a wallet's balance and type.

    Raises:
        CredentialMissing: no address.
        NotCovered: the lake cannot know the account.
        AnswerConflict: the account is not a wallet.
    """
    row = _read_account(call, query)
    if row["code_hash"] not in WALLETS and row["account_status"] != "uninit":
        raise AnswerConflict("not a wallet")
    fields = _read_fields(
        row, read_bodies(call, [row], columns=("data_hash",), mc_seqno=query.mc_seqno)
    )
    fields.pop("is_signature_allowed", None)
    return make_builder(WalletInformation)((row,), **fields)


def _read_account(call: Call, query: InformationQuery) -> Row:
    address, mc_seqno = query.address, query.mc_seqno
    if address is None:
        raise CredentialMissing("address of account is required")
    if mc_seqno is not None:
        check_mc_seqno(call.reader, mc_seqno)
    row = read_accounts(call, [address], mc_seqno).get(address)
    if row is None or not is_current(call.reader, row, mc_seqno):
        fetched = fetch_accounts(call, [address], mc_seqno)
        if address in fetched:
            return fetched[address] or UNKNOWN
        check_accounts_known(call.reader, [address], mc_seqno)
    return row or UNKNOWN


def _read_fields(row: Row, cells: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Return the type of a wallet and the fields of its data; {} for other contracts."""
    kind, data = WALLETS.get(row["code_hash"]), cells.get(row["data_hash"])
    if kind is None:
        return {}
    fields: dict[str, Any] = {"wallet_type": kind.name}
    if data is not None:
        read = read_wallet_data(kind, data)
        names = ("seqno", "wallet_id", "is_signature_allowed")
        known = {name: getattr(read, name) for name in names}
        fields |= {name: value for name, value in known.items() if value is not None}
    return fields


routes = [
    operation("/walletStates", WalletStatesQuery, get_wallet_states),
    operation("/addressInformation", InformationQuery, get_address_information),
    operation("/account", InformationQuery, get_address_information),
    operation("/walletInformation", InformationQuery, get_wallet_information),
    operation("/wallet", InformationQuery, get_wallet_information),
]
