"""Bodies of the messages that a multisig order sends, in the words of ``parsed_body``.

Each reader begins behind the opcode and returns the fields of one type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.api.v3.resource.order_field import (
    ENCRYPTED_TEXT,
    MINTER_MINT,
    OPCODE_BITS,
    TEXT,
    Fields,
    encode_cell,
    encode_rest,
    load_address,
    load_maybe_cell,
    load_payload,
    load_text,
    read_burn,
    read_change_admin,
    read_change_content,
    read_direct_mint,
    read_encrypted,
    read_message,
    read_minter_mint,
    read_query,
    read_set_status,
    read_transfer,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.decode.cell.slice import CellSlice


class ParsedBody(NamedTuple):
    """What kind of body it is, and its fields."""

    kind: str
    fields: Fields


def read_body(source: CellSlice) -> ParsedBody:
    """Read a body; one of no known kind is ``unknown`` with its opcode and data.

    Raises:
        BocError, BodyError: the opcode is known, but the body is not of its layout.
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
    """Return the text of a body that is a comment, else ""."""
    source = body.copy()
    if source.bits_left < OPCODE_BITS or source.load_uint(OPCODE_BITS) != TEXT:
        return ""
    return load_text(source)


def _read_text(source: CellSlice) -> Fields:
    return {"comment": load_text(source), "encrypted": False}


def _read_nft_transfer(source: CellSlice) -> Fields:
    fields = read_query(source) | {
        "new_owner": load_address(source),
        "response_destination": load_address(source),
        "custom_payload": load_maybe_cell(source),
        "forward_amount": str(source.load_coins()),
    }
    payload = load_payload(source)
    has_payload = payload.bits_left or payload.refs_left
    return fields | {"forward_payload": encode_rest(payload) if has_payload else None}


def _read_call_to(source: CellSlice) -> Fields:
    fields = read_query(source) | {
        "to_address": load_address(source),
        "ton_amount": str(source.load_coins()),
    }
    cell = source.load_ref()
    action = source.tree.slice(cell)
    known = action.bits_left >= OPCODE_BITS and _KINDS.get(action.peek_uint(OPCODE_BITS))
    return fields | {
        "action_type": known[0] if known else "unknown",
        "action_data": encode_cell(source, cell),
    }


def _read_withdraw(source: CellSlice) -> Fields:
    return read_query(source) | {"coins": str(source.load_coins())}


def _read_change_validator(source: CellSlice) -> Fields:
    return read_query(source) | {"validator_address": load_address(source)}


def _read_vesting_send(source: CellSlice) -> Fields:
    fields = read_query(source) | {"send_mode": source.load_uint(8)}
    message = read_message(source.tree.slice(source.load_ref()))
    return fields | {
        "destination": message.destination,
        "value": message.value,
        "message_body": encode_rest(message.body),
        "comment": _find_comment(message.body),
    }


_KINDS: dict[int, tuple[str, Callable[[CellSlice], Fields]]] = {
    TEXT: ("ton_transfer", _read_text),
    ENCRYPTED_TEXT: ("ton_transfer", read_encrypted),
    0x0F8A7EA5: ("jetton_transfer", read_transfer),
    0x595F07BC: ("jetton_burn", read_burn),
    MINTER_MINT: ("jetton_mint", read_minter_mint),
    0x642B7D07: ("jetton_mint", read_direct_mint),
    0x5FCC3D14: ("nft_transfer", _read_nft_transfer),
    0xD372158C: ("jetton_top_up", read_query),
    0x6501F354: ("jetton_change_admin", read_change_admin),
    0xFB88E119: ("jetton_claim_admin", read_query),
    0xCB862902: ("jetton_change_content", read_change_content),
    0x235CAF52: ("jetton_call_to", _read_call_to),
    0xEED236D3: ("jetton_set_status", read_set_status),
    0x00001000: ("single_nominator_withdraw", _read_withdraw),
    0x00001001: ("single_nominator_change_validator", _read_change_validator),
    0xA7733ACD: ("vesting_internal_transfer", _read_vesting_send),
}
"""Kinds of bodies by opcode, with the reader of what follows it."""
