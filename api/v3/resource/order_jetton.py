"""Bodies about jettons in multisig orders; each reader begins behind the opcode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.api.v3.resource.order_field import (
    ENCRYPTED_TEXT,
    OPCODE_BITS,
    TEXT,
    Fields,
    encode_rest,
    load_address,
    load_maybe_cell,
    load_payload,
    load_text,
    read_encrypted,
    read_query,
)

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice

MINTER_MINT = 0x00000015
STONFI_SWAP = 0x25938561


def read_transfer(source: CellSlice) -> Fields:
    """Read transfer (TEP-74), and what travels along."""
    fields = read_query(source) | {
        "amount": str(source.load_coins()),
        "destination": load_address(source),
        "response": load_address(source),
        "custom_payload": load_maybe_cell(source),
        "forward_amount": str(source.load_coins()),
        "comment": "",
        "encrypted_comment": False,
        "forward_payload": None,
        "payload_sum_type": "",
        "stonfi_swap_body": None,
    }
    payload = load_payload(source)
    if payload.bits_left or payload.refs_left:
        fields["forward_payload"] = encode_rest(payload)
        fields |= _read_forward_payload(payload)
    return fields


def _read_forward_payload(payload: CellSlice) -> Fields:
    """Name what travels with jettons; what is of no known layout is just a cell."""
    opcode = payload.load_uint(OPCODE_BITS) if payload.bits_left >= OPCODE_BITS else None
    if opcode == TEXT:
        return {"payload_sum_type": "TextComment", "comment": load_text(payload)}
    if opcode == ENCRYPTED_TEXT:
        comment = read_encrypted(payload)["comment"]
        return {
            "payload_sum_type": "EncryptedTextComment",
            "comment": comment,
            "encrypted_comment": True,
        }
    if opcode == STONFI_SWAP:
        return {"payload_sum_type": "StonfiSwap", "stonfi_swap_body": _read_swap(payload)}
    return {"payload_sum_type": "Cell"}


def _read_swap(source: CellSlice) -> Fields:
    return {
        "token_wallet": load_address(source),
        "min_out": str(source.load_coins()),
        "to_address": load_address(source),
        "referral_address": load_address(source) if source.load_bit() else None,
    }


def read_burn(source: CellSlice) -> Fields:
    """Read burn (TEP-74)."""
    return read_query(source) | {
        "amount": str(source.load_coins()),
        "response_destination": load_address(source),
    }


def _read_mint(source: CellSlice) -> Fields:
    """Read what minters of both kinds take first: to whom, and the coins that travel along."""
    return read_query(source) | {
        "to_address": load_address(source),
        "ton_amount": str(source.load_coins()),
    }


def read_minter_mint(source: CellSlice) -> Fields:
    """Read the mint of classic minters, with the message to the new owner's wallet."""
    fields = {"opcode": MINTER_MINT, **_read_mint(source)}
    message = source.tree.slice(source.load_ref())
    message.skip(OPCODE_BITS)
    return fields | {
        "master_msg_query_id": message.load_uint(64),
        "master_msg_jetton_amount": str(message.load_coins()),
    }


def read_direct_mint(source: CellSlice) -> Fields:
    """Read the amount of jettons from the message to their wallet, or from where it stands."""
    fields = _read_mint(source)
    if source.refs_left:
        source = source.tree.slice(source.load_ref())
        source.skip(OPCODE_BITS + 64)
    return fields | {"jetton_amount": str(source.load_coins())}


def read_change_admin(source: CellSlice) -> Fields:
    """Read change_admin: who governs from now on."""
    return read_query(source) | {"new_admin_address": load_address(source)}


def read_change_content(source: CellSlice) -> Fields:
    """Read change_metadata_url: where the content is from now on."""
    return read_query(source) | {"new_metadata_url": load_text(source)}


def read_set_status(source: CellSlice) -> Fields:
    """Read set_status: whether a wallet may send and receive."""
    return read_query(source) | {"new_status": source.load_uint(4)}
