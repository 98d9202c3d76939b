"""Operations about wallets, and the two account operations in the words of version 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from tonlake.api.chain.account import WALLETS, WalletData, read_wallet_data
from tonlake.api.errors import AnswerConflict, CredentialMissing
from tonlake.api.request.params import Addresses, Flag, Int32, OneAddress, Query
from tonlake.api.text.encoding import decode_currencies, encode_bytes, encode_optional
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
from tonlake.api.v3.route.account import find_accounts, read_bodies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.api.request.call import Call
    from tonlake.api.text.address import Address

Row = dict[str, Any]

UNKNOWN: Row = {
    "account_status": "uninit",
    "balance": 0,
    "last_trans_lt": 0,
    "last_trans_hash": bytes(32),
    "code_hash": None,
    "data_hash": None,
}
"""What an account that the lake has never seen is said to be, as in the peer."""


class WalletStatesQuery(Query, frozen=True, kw_only=True):
    """Accounts, and the masterchain block after which they are told; the newest without it."""

    address: Addresses = ()
    mc_seqno: Int32 = None


class InformationQuery(Query, frozen=True, kw_only=True):
    """One account; ``use_v2`` chooses between two sources of the peer, which are one here."""

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
    cells = read_bodies(call, wallets, columns=("data_hash",))
    return WalletStates(
        wallets=[_render_wallet(address, row, cells) for address, row in accounts.items()],
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
    cells = read_bodies(call, [row])
    return AddressInformation(
        balance=str(row["balance"]),
        code=encode_optional(cells.get(row["code_hash"])),
        data=encode_optional(cells.get(row["data_hash"])),
        last_transaction_lt=str(row["last_trans_lt"]),
        last_transaction_hash=encode_bytes(row["last_trans_hash"]),
        frozen_hash=None,
        status=row["account_status"],
    )


def get_wallet_information(call: Call, query: InformationQuery) -> WalletInformation:
    """Show a wallet's balance and type.

    Raises:
        CredentialMissing: no address.
        NotCovered: the lake cannot know the account.
        AnswerConflict: the account is no wallet.
    """
    row = _read_account(call, query)
    kind = WALLETS.get(row["code_hash"])
    if kind is None and row["account_status"] != "uninit":
        raise AnswerConflict("not a wallet")
    data = _read_data(row, read_bodies(call, [row], columns=("data_hash",)))
    return WalletInformation(
        balance=str(row["balance"]),
        last_transaction_lt=str(row["last_trans_lt"]),
        last_transaction_hash=encode_bytes(row["last_trans_hash"]),
        status=row["account_status"],
        wallet_type=UNSET if kind is None else kind.name,
        seqno=UNSET if data is None else data.seqno,
        wallet_id=UNSET if data is None or data.wallet_id is None else data.wallet_id,
    )


def _read_account(call: Call, query: InformationQuery) -> Row:
    address, mc_seqno = query.address, query.mc_seqno
    if address is None:
        raise CredentialMissing("address of account is required")
    if mc_seqno is not None:
        check_mc_seqno(call.reader, mc_seqno)
    row = read_accounts(call, [address], mc_seqno).get(address)
    if row is None or not is_current(call.reader, row, mc_seqno):
        check_accounts_known(call.reader, [address])
    return row or UNKNOWN


def _read_data(row: Row, cells: Mapping[bytes, bytes]) -> WalletData | None:
    """Return what a wallet's data says; None for other contracts and where the data is missing."""
    kind, data = WALLETS.get(row["code_hash"]), cells.get(row["data_hash"])
    return None if kind is None or data is None else read_wallet_data(kind, data)


def _render_wallet(address: Address, row: Row, cells: Mapping[bytes, bytes]) -> WalletState:
    kind, data = WALLETS.get(row["code_hash"]), _read_data(row, cells)
    known = (
        {}
        if data is None
        else {
            name: value
            for name in ("seqno", "wallet_id", "is_signature_allowed")
            if (value := getattr(data, name)) is not None
        }
    )
    return WalletState(
        address=str(address),
        is_wallet=kind is not None,
        last_transaction_hash=encode_bytes(row["last_trans_hash"]),
        last_transaction_lt=str(row["last_trans_lt"]),
        wallet_type=UNSET if kind is None else kind.name,
        balance=str(row["balance"]),
        extra_currencies=decode_currencies(row["extra_currencies"]),
        status=row["account_status"],
        code_hash=encode_optional(row["code_hash"]) or UNSET,
        **known,
    )


routes = [
    operation("/walletStates", WalletStatesQuery, get_wallet_states, unwaiting=True),
    operation("/addressInformation", InformationQuery, get_address_information, unwaiting=True),
    operation("/account", InformationQuery, get_address_information, unwaiting=True),
    operation("/walletInformation", InformationQuery, get_wallet_information, unwaiting=True),
    operation("/wallet", InformationQuery, get_wallet_information, unwaiting=True),
]
