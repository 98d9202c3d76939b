"""Decodes the bodies of messages in a multisig order into the fields of ``parsed_body``.

Each reader starts after the opcode and returns the fields of one type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.api.v3.resource.order_field import (
    ENCRYPTED_TEXT,
    OPCODE_BITS,
    TEXT,
    Fields,
    encode_cell,
    encode_rest,
    load_address,
    load_coins,
    load_maybe_cell,
    load_payload,
    load_text,
    read_encrypted,
    read_message,
    read_query,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.decode.cell.slice import CellSlice

    Reader = Callable[[CellSlice], Fields]

MINTER_MINT = 0x00000015
STONFI_SWAP = 0x25938561


class ParsedBody(NamedTuple):
    """The type of a body, and its fields."""

    kind: str
    fields: Fields


def read_body(source: CellSlice) -> ParsedBody:
    """Read a body; one of unknown type is ``unknown`` with its opcode and data.

    Raises:
        BocError, BodyError: the opcode is known, but the body does not match its layout.
    """
    start = source.copy()
    if not (source.bits_left or source.refs_left):
        return ParsedBody("ton_transfer", {"comment": "", "encrypted": False})
    if source.bits_left < OPCODE_BITS:
        return ParsedBody("unknown", {"opcode": 0, "data": encode_rest(start)})
    opcode = source.load_uint(OPCODE_BITS)
    kind, read = _KINDS.get(opcode, ("unknown", None))
    if read is None:
        return ParsedBody(kind, {"opcode": opcode, "data": encode_rest(start)})
    return ParsedBody(kind, read(source))


def _find_comment(body: CellSlice) -> str:
    """Return the text of a comment body; "" for other bodies."""
    source = body.copy()
    if source.bits_left < OPCODE_BITS or source.load_uint(OPCODE_BITS) != TEXT:
        return ""
    return load_text(source)


def _read_text(source: CellSlice) -> Fields:
    return {"comment": load_text(source), "encrypted": False}


def _read_in_order(**fields: Callable[[CellSlice], Any]) -> Reader:
    """Return the reader of a body with a query id and these fields."""
    return lambda source: read_query(source) | {name: load(source) for name, load in fields.items()}


_TRANSFER = _read_in_order(
    amount=load_coins,
    destination=load_address,
    response=load_address,
    custom_payload=load_maybe_cell,
    forward_amount=load_coins,
)
_NFT_TRANSFER = _read_in_order(
    new_owner=load_address,
    response_destination=load_address,
    custom_payload=load_maybe_cell,
    forward_amount=load_coins,
)
_MINT = _read_in_order(to_address=load_address, ton_amount=load_coins)


def _read_transfer(source: CellSlice) -> Fields:
    fields = _TRANSFER(source) | {
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
    """Read the forward payload of a jetton transfer; an unknown layout is returned as a cell."""
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
        "min_out": load_coins(source),
        "to_address": load_address(source),
        "referral_address": load_address(source) if source.load_bit() else None,
    }


def _read_minter_mint(source: CellSlice) -> Fields:
    """Read the mint body of classic minters, which contains the message to the owner's wallet."""
    fields = {"opcode": MINTER_MINT, **_MINT(source)}
    message = source.tree.slice(source.load_ref())
    message.skip(OPCODE_BITS)
    return fields | {
        "master_msg_query_id": message.load_uint(64),
        "master_msg_jetton_amount": load_coins(message),
    }


def _read_direct_mint(source: CellSlice) -> Fields:
    """Read the jetton amount from the message to the wallet, or from the body itself."""
    fields = _MINT(source)
    if source.refs_left:
        source = source.tree.slice(source.load_ref())
        source.skip(OPCODE_BITS + 64)
    return fields | {"jetton_amount": load_coins(source)}


def _read_nft_transfer(source: CellSlice) -> Fields:
    fields = _NFT_TRANSFER(source)
    payload = load_payload(source)
    has_payload = payload.bits_left or payload.refs_left
    return fields | {"forward_payload": encode_rest(payload) if has_payload else None}


def _read_call_to(source: CellSlice) -> Fields:
    fields = _MINT(source)
    cell = source.load_ref()
    action = source.tree.slice(cell)
    known = action.bits_left >= OPCODE_BITS and _KINDS.get(action.peek_uint(OPCODE_BITS))
    return fields | {
        "action_type": known[0] if known else "unknown",
        "action_data": encode_cell(source, cell),
    }


def _read_vesting_send(source: CellSlice) -> Fields:
    fields = read_query(source) | {"send_mode": source.load_uint(8)}
    message = read_message(source.tree.slice(source.load_ref()))
    return fields | {
        "destination": message.destination,
        "value": message.value,
        "message_body": encode_rest(message.body),
        "comment": _find_comment(message.body),
    }


_KINDS: dict[int, tuple[str, Reader]] = {
    TEXT: ("ton_transfer", _read_text),
    ENCRYPTED_TEXT: ("ton_transfer", read_encrypted),
    0x0F8A7EA5: ("jetton_transfer", _read_transfer),
    0x595F07BC: (
        "jetton_burn",
        _read_in_order(amount=load_coins, response_destination=load_address),
    ),
    MINTER_MINT: ("jetton_mint", _read_minter_mint),
    0x642B7D07: ("jetton_mint", _read_direct_mint),
    0x5FCC3D14: ("nft_transfer", _read_nft_transfer),
    0xD372158C: ("jetton_top_up", read_query),
    0x6501F354: ("jetton_change_admin", _read_in_order(new_admin_address=load_address)),
    0xFB88E119: ("jetton_claim_admin", read_query),
    0xCB862902: ("jetton_change_content", _read_in_order(new_metadata_url=load_text)),
    0x235CAF52: ("jetton_call_to", _read_call_to),
    0xEED236D3: (
        "jetton_set_status",
        _read_in_order(new_status=lambda source: source.load_uint(4)),
    ),
    0x00001000: ("single_nominator_withdraw", _read_in_order(coins=load_coins)),
    0x00001001: (
        "single_nominator_change_validator",
        _read_in_order(validator_address=load_address),
    ),
    0xA7733ACD: ("vesting_internal_transfer", _read_vesting_send),
}
"""Types of bodies by opcode, with the readers of the fields that follow it."""
