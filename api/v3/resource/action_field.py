"""Fields of action details that are computed from several columns."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from tonlake.api.text.encoding import encode_number
from tonlake.ingest.derive.action.body import read_body, read_comment
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]

_DNS_FIELDS = (
    *("dns_smc_address", "dns_adnl_address", "dns_text", "dns_next_resolver_address"),
    "dns_storage_address",
)
_DNS_FIELD_OF = {
    "DNSSmcAddress": "dns_smc_address",
    "DNSAdnlAddress": "dns_adnl_address",
    "DNSNextResolver": "dns_next_resolver_address",
}
"""All other records, also text, go to ``dns_storage_address``, as in TON Center."""

_TRANSFER_FIELDS = ("asset", "source", "destination", "source_jetton_wallet")
_TON_ASSET_ID = "0x1a4219fe5e60d63af2a3cc7dce6fec69b45c6b5718497a6148e7c232ac87bd8a"


def _dns_value(_row: Row, parts: Row) -> Row:
    record = parts.get("change_dns_record_data") or {}
    schema = str(record.get("value_schema"))
    value: Row = {"sum_type": record.get("value_schema")} | dict.fromkeys(_DNS_FIELDS)
    value[_DNS_FIELD_OF.get(schema, "dns_storage_address")] = record.get("value")
    return {"value": value | {"flags": record.get("flags")}}


def _destination_liquidity(row: Row, parts: Row) -> Row:
    dex = (parts.get("dex_deposit_liquidity_data") or {}).get("dex")
    name = "destination_secondary" if dex == "dedust" else "destination"
    return {"destination_liquidity": row[name]}


def _vault_excesses(_row: Row, parts: Row) -> Row:
    excesses = (parts.get("dex_deposit_liquidity_data") or {}).get("vault_excesses") or ()
    shown = [{"asset": each["asset"], "amount": encode_number(each["amount"])} for each in excesses]
    return {"vault_excesses": shown}


def _dex_transfer(name: str) -> Callable[[Row, Row], Row]:
    def show(_row: Row, parts: Row) -> Row:
        transfer = (parts.get("jetton_swap_data") or {}).get(name) or {}
        shown = {field: transfer.get(field) for field in _TRANSFER_FIELDS}
        shown["destination_jetton_wallet"] = transfer.get("destination_jetton_wallet")
        return {name: shown | {"amount": encode_number(transfer.get("amount"))}}

    return show


def _peer_swaps(_row: Row, parts: Row) -> Row:
    hops = (parts.get("jetton_swap_data") or {}).get("peer_swaps") or ()
    shown = [
        {
            "asset_in": hop.get("asset_in"),
            "amount_in": encode_number(hop.get("amount_in")),
            "asset_out": hop.get("asset_out"),
            "amount_out": encode_number(hop.get("amount_out")),
        }
        for hop in hops
    ]
    return {"peer_swaps": shown}


def _min_out_amount(_row: Row, parts: Row) -> Row:
    swap = parts.get("jetton_swap_data") or {}
    if swap.get("dex") != "tonco":
        return {}
    return {"min_out_amount": encode_number(swap.get("min_out_amount"))}


def _read_nft_comment(parts: Row) -> tuple[str | None, bool | None]:
    """Return the comment in the forward payload; two Nones if there is no payload."""
    payload = (parts.get("nft_transfer_data") or {}).get("forward_payload")
    if payload is None:
        return None, None
    try:
        return read_comment(read_body(base64.b64decode(payload)))
    except BocError:
        return None, None


def _source_asset(row: Row, parts: Row) -> Row:
    if (parts.get("staking_data") or {}).get("provider") != "ethena" or row["asset2"] is None:
        return {}
    return {"source_asset": row["asset2"]}


def _tokens_minted(_row: Row, parts: Row) -> Row:
    staking = parts.get("staking_data") or {}
    if staking.get("provider") != "ethena" or staking.get("tokens_minted") is None:
        return {}
    return {"tokens_minted": encode_number(staking["tokens_minted"])}


def _liquidated_asset(_row: Row, _parts: Row) -> Row:
    # TON Center maps asset ids to jettons by a table that it does not publish.
    return {"asset": None}


def _is_known_asset(_row: Row, parts: Row) -> Row:
    asset_id = (parts.get("evaa_liquidate_data") or {}).get("asset_id")
    return {"is_known_asset": asset_id == _TON_ASSET_ID}


def _claimed_rewards(_row: Row, parts: Row) -> Row:
    claim = parts.get("jvault_claim_data") or {}
    jettons, amounts = claim.get("claimed_jettons") or (), claim.get("claimed_amounts") or ()
    if len(jettons) != len(amounts):
        return {"claimed_rewards": []}
    pairs = zip(jettons, amounts, strict=True)
    return {
        "claimed_rewards": [
            {"jetton": jetton, "amount": encode_number(amount)} for jetton, amount in pairs
        ]
    }


def _whole(name: str) -> Callable[[Row, Row], Row]:
    return lambda _row, parts: {name: parts.get(name)}


SPECIAL: dict[str, Callable[[Row, Row], Row]] = {
    "value": _dns_value,
    "destination_liquidity": _destination_liquidity,
    "vault_excesses": _vault_excesses,
    "dex_incoming_transfer": _dex_transfer("dex_incoming_transfer"),
    "dex_outgoing_transfer": _dex_transfer("dex_outgoing_transfer"),
    "peer_swaps": _peer_swaps,
    "min_out_amount": _min_out_amount,
    "comment": lambda _row, parts: {"comment": _read_nft_comment(parts)[0]},
    "is_encrypted_comment": lambda _row, parts: {
        "is_encrypted_comment": _read_nft_comment(parts)[1]
    },
    "source_asset": _source_asset,
    "tokens_minted": _tokens_minted,
    "asset": _liquidated_asset,
    "is_known_asset": _is_known_asset,
    "claimed_rewards": _claimed_rewards,
    "layerzero_send_data": _whole("layerzero_send_data"),
    "layerzero_packet_data": _whole("layerzero_packet_data"),
}
"""Functions by field name that return additions to the details, from a row and its details."""
