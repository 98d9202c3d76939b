"""Responses of version 3, and its resources about accounts.

A field whose default is ``UNSET`` is left out of the JSON; a None is written as null.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET

from tonlake.api.text.encoding import decode_currencies
from tonlake.api.v3.layout.block import Block
from tonlake.api.v3.layout.field import Base64, Column, Currencies, Decimal, Kind, Omitted, Read
from tonlake.api.v3.layout.message import Message
from tonlake.api.v3.layout.transaction import Transaction


class AddressBookRow(msgspec.Struct):
    """User-friendly form, domain and interfaces of an address."""

    user_friendly: str | None
    domain: str | None
    interfaces: list[str] | None


AddressBook = dict[str, AddressBookRow]


class TokenInfo(msgspec.Struct):
    """Type and metadata of a token contract; ``extra`` has all other keys.

    ``valid`` is left out if only the location of the content (``uri``) is known.
    """

    type: str
    valid: bool | Omitted = UNSET
    name: str | Omitted = UNSET
    symbol: str | Omitted = UNSET
    description: str | Omitted = UNSET
    image: str | Omitted = UNSET
    nft_index: str | Omitted = UNSET
    extra: dict[str, object] | Omitted = UNSET


class AddressMetadata(msgspec.Struct):
    """Token metadata of an account.

    ``is_indexed`` is false if its content is off-chain and was not fetched.
    """

    is_indexed: bool
    token_info: list[TokenInfo]


Metadata = dict[str, AddressMetadata]
"""By raw address; accounts that are not token contracts are left out."""


class MasterchainInfo(msgspec.Struct):
    """The newest and the oldest masterchain block in the lake."""

    last: Block
    first: Block


class Blocks(msgspec.Struct):
    """A page of blocks."""

    blocks: list[Block]


class Transactions(msgspec.Struct):
    """A page of transactions, and the addresses in them."""

    transactions: list[Transaction]
    address_book: AddressBook


class ShardState(msgspec.Struct):
    """The newest block of every shard, with the transactions in those blocks."""

    blocks: list[Block]
    transactions: list[Transaction]
    address_book: AddressBook


class Messages(msgspec.Struct):
    """A page of messages, and the addresses in them."""

    messages: list[Message]
    address_book: AddressBook
    metadata: Metadata


class AccountStateFull(msgspec.Struct):
    """An account's newest state, with code and data."""

    address: Annotated[str, Kind.EXTRA]
    account_state_hash: Annotated[Base64, Column("hash")]
    balance: Decimal | None
    extra_currencies: Currencies | None
    status: Annotated[str, Column("account_status")] | None
    last_transaction_hash: Annotated[Base64, Column("last_trans_hash")] | None
    last_transaction_lt: Annotated[Decimal, Column("last_trans_lt")] | None
    contract_methods: Annotated[list[int], Kind.EXTRA] | None
    interfaces: Annotated[list[str], Kind.EXTRA] | None
    frozen_hash: Base64 | Omitted = UNSET
    data_hash: Base64 | Omitted = UNSET
    code_hash: Base64 | Omitted = UNSET
    data_boc: Annotated[str, Kind.EXTRA] | Omitted = UNSET
    code_boc: Annotated[str, Kind.EXTRA] | Omitted = UNSET


class AccountStates(msgspec.Struct):
    """States of the requested accounts, unknown ones omitted."""

    accounts: list[AccountStateFull]
    address_book: AddressBook
    metadata: Metadata


def _read_currencies(text: str) -> dict[str, str] | Omitted:
    """Return extra currencies; UNSET if there are none."""
    return decode_currencies(text) or UNSET


class WalletState(msgspec.Struct):
    """A wallet decoded from its data; other contracts have only the fields of an account."""

    address: Annotated[str, Kind.EXTRA]
    is_wallet: Annotated[bool, Kind.EXTRA]
    last_transaction_hash: Annotated[Base64, Column("last_trans_hash")] | None
    last_transaction_lt: Annotated[Decimal, Column("last_trans_lt")] | None
    wallet_type: Annotated[str, Kind.EXTRA] | Omitted = UNSET
    seqno: Annotated[int, Kind.EXTRA] | Omitted = UNSET
    wallet_id: Annotated[int, Kind.EXTRA] | Omitted = UNSET
    balance: Decimal | Omitted = UNSET
    extra_currencies: Annotated[Currencies, Read(_read_currencies)] | Omitted = UNSET
    is_signature_allowed: Annotated[bool, Kind.EXTRA] | Omitted = UNSET
    status: Annotated[str, Column("account_status")] | Omitted = UNSET
    code_hash: Base64 | Omitted = UNSET


class WalletStates(msgspec.Struct):
    """States of the requested wallets."""

    wallets: list[WalletState]
    address_book: AddressBook
    metadata: Metadata


class AccountBalance(msgspec.Struct):
    """An account and its balance in nanoton."""

    account: str
    balance: str


class AddressInformation(msgspec.Struct):
    """An account, with version 2 field names."""

    balance: Decimal
    code: Annotated[str, Kind.EXTRA] | None
    data: Annotated[str, Kind.EXTRA] | None
    last_transaction_lt: Annotated[Decimal, Column("last_trans_lt")] | None
    last_transaction_hash: Annotated[Base64, Column("last_trans_hash")] | None
    frozen_hash: Annotated[str, Kind.EXTRA] | None
    status: Annotated[str, Column("account_status")]


class WalletInformation(msgspec.Struct):
    """A wallet, with version 2 field names."""

    balance: Decimal
    last_transaction_lt: Annotated[Decimal, Column("last_trans_lt")]
    last_transaction_hash: Annotated[Base64, Column("last_trans_hash")]
    status: Annotated[str, Column("account_status")]
    wallet_type: Annotated[str, Kind.EXTRA] | Omitted = UNSET
    seqno: Annotated[int, Kind.EXTRA] | Omitted = UNSET
    wallet_id: Annotated[int, Kind.EXTRA] | Omitted = UNSET
