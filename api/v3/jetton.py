"""Jettons as version 3 writes them: masters, wallets, and what moves between wallets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from api.address import Address, render_raw
from api.encoding import encode_account, encode_bytes, encode_number, encode_optional
from api.v3.payload import Payload, decode_content, decode_payload, encode_payload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Row = dict[str, Any]


class JettonMaster(msgspec.Struct, gc=False):
    """A jetton master: supply, administrator and TEP-64 content."""

    address: str
    total_supply: str
    mintable: bool
    admin_address: str | None
    jetton_content: dict[str, object] | None
    jetton_wallet_code_hash: str
    code_hash: str | None
    data_hash: str | None
    last_transaction_lt: str


class JettonWallet(msgspec.Struct, gc=False):
    """A jetton wallet; the balance is in the smallest unit."""

    address: str
    balance: str
    owner: str | None
    jetton: str
    last_transaction_lt: str
    code_hash: str | None
    data_hash: str | None


class JettonTransfer(msgspec.Struct, gc=False):
    """A transfer, as requested from the sender's jetton wallet."""

    query_id: str
    source: str | None
    destination: str | None
    amount: str
    source_wallet: str
    jetton_master: str
    transaction_hash: str
    transaction_lt: str
    transaction_now: int
    transaction_aborted: bool
    response_destination: str | None
    custom_payload: str | None
    decoded_custom_payload: Payload | None
    forward_ton_amount: str | None
    forward_payload: str | None
    decoded_forward_payload: Payload | None
    trace_id: str | None


class JettonBurn(msgspec.Struct, gc=False):
    """A burn, as requested from the owner's jetton wallet."""

    query_id: str
    owner: str | None
    jetton_wallet: str
    jetton_master: str
    transaction_hash: str
    transaction_lt: str
    transaction_now: int
    transaction_aborted: bool
    amount: str
    response_destination: str | None
    custom_payload: str | None
    decoded_custom_payload: Payload | None
    trace_id: str | None


def render_master(row: Row) -> JettonMaster:
    """Return the master of a row of ``jetton_masters``."""
    return JettonMaster(
        address=render_raw(row["workchain"], row["account"]),
        total_supply=str(row["total_supply"]),
        mintable=row["mintable"],
        admin_address=encode_account(row["admin_workchain"], row["admin"]),
        jetton_content=decode_content(row["content"]),
        jetton_wallet_code_hash=encode_bytes(row["wallet_code_hash"]),
        code_hash=encode_optional(row["code_hash"]),
        data_hash=encode_optional(row["data_hash"]),
        last_transaction_lt=str(row["lt"]),
    )


def render_wallet(row: Row) -> JettonWallet:
    """Return the wallet of a row of ``jetton_wallets``."""
    return JettonWallet(
        address=render_raw(row["workchain"], row["account"]),
        balance=str(row["balance"]),
        owner=encode_account(row["owner_workchain"], row["owner"]),
        jetton=render_raw(row["jetton_workchain"], row["jetton"]),
        last_transaction_lt=str(row["lt"]),
        code_hash=encode_optional(row["code_hash"]),
        data_hash=encode_optional(row["data_hash"]),
    )


def render_transfer(row: Row, trace_ids: Mapping[bytes, bytes]) -> JettonTransfer:
    """Return the transfer of a row of ``jetton_transfers``; trace ids by transaction hash."""
    return JettonTransfer(
        query_id=str(row["query_id"]),
        source=encode_account(row["source_workchain"], row["source"]),
        destination=encode_account(row["destination_workchain"], row["destination"]),
        amount=str(row["amount"]),
        source_wallet=render_raw(row["workchain"], row["account"]),
        jetton_master=render_raw(row["jetton_workchain"], row["jetton"]),
        transaction_hash=encode_bytes(row["tx_hash"]),
        transaction_lt=str(row["lt"]),
        transaction_now=row["now"],
        transaction_aborted=row["aborted"],
        response_destination=encode_account(
            row["response_destination_workchain"], row["response_destination"]
        ),
        custom_payload=encode_payload(row["custom_payload"]),
        decoded_custom_payload=decode_payload(row["custom_payload"]),
        forward_ton_amount=encode_number(row["forward_ton_amount"]),
        forward_payload=encode_payload(row["forward_payload"]),
        decoded_forward_payload=decode_payload(row["forward_payload"]),
        trace_id=encode_optional(trace_ids.get(row["tx_hash"])),
    )


def render_burn(row: Row, trace_ids: Mapping[bytes, bytes]) -> JettonBurn:
    """Return the burn of a row of ``jetton_burns``; trace ids by transaction hash."""
    return JettonBurn(
        query_id=str(row["query_id"]),
        owner=encode_account(row["owner_workchain"], row["owner"]),
        jetton_wallet=render_raw(row["workchain"], row["account"]),
        jetton_master=render_raw(row["jetton_workchain"], row["jetton"]),
        transaction_hash=encode_bytes(row["tx_hash"]),
        transaction_lt=str(row["lt"]),
        transaction_now=row["now"],
        transaction_aborted=row["aborted"],
        amount=str(row["amount"]),
        response_destination=encode_account(
            row["response_destination_workchain"], row["response_destination"]
        ),
        custom_payload=encode_payload(row["custom_payload"]),
        decoded_custom_payload=decode_payload(row["custom_payload"]),
        trace_id=encode_optional(trace_ids.get(row["tx_hash"])),
    )


def list_addresses(row: Row, *names: str) -> Iterator[Address]:
    """Yield the account of a row, and those of its other columns that are given by name."""
    yield Address(row["workchain"], row["account"])
    for name in names:
        if row[name] is not None:
            yield Address(row[f"{name}_workchain"], row[name])
