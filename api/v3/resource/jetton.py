"""Jettons as version 3 writes them: masters, wallets, and what moves between wallets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tonlake.api.text.address import Address
from tonlake.api.text.encoding import encode_optional
from tonlake.api.v3.layout.build import make_builder
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
from tonlake.api.v3.resource.payload import Payload, decode_content, decode_payload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Row = dict[str, Any]


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


def render_master(row: Row) -> JettonMaster:
    """Return the master of a row of ``jetton_masters``."""
    return make_builder(JettonMaster)((row,))


def render_wallet(row: Row) -> JettonWallet:
    """Return the wallet of a row of ``jetton_wallets``."""
    return make_builder(JettonWallet)((row,))


def render_transfer(row: Row, trace_ids: Mapping[bytes, bytes]) -> JettonTransfer:
    """Return the transfer of a row of ``jetton_transfers``; trace ids by transaction hash."""
    trace_id = encode_optional(trace_ids.get(row["tx_hash"]))
    return make_builder(JettonTransfer)((row,), trace_id=trace_id)


def render_burn(row: Row, trace_ids: Mapping[bytes, bytes]) -> JettonBurn:
    """Return the burn of a row of ``jetton_burns``; trace ids by transaction hash."""
    trace_id = encode_optional(trace_ids.get(row["tx_hash"]))
    return make_builder(JettonBurn)((row,), trace_id=trace_id)


def list_addresses(row: Row, *names: str) -> Iterator[Address]:
    """Yield the account of a row, and those of its other columns that are given by name."""
    yield Address(row["workchain"], row["account"])
    for name in names:
        if row[name] is not None:
            yield Address(row[f"{name}_workchain"], row[name])
