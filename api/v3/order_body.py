"""Bodies of the messages that a multisig order sends, in the words of ``parsed_body``.

Each reader begins behind the opcode and returns the fields of one type. Unlike elsewhere in
version 3, ``query_id`` is a number; amounts are decimal text, addresses raw text, cells base64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from api.encoding import encode_bytes
from ingest.body.address import STD, Address
from ingest.body.codec import Work
from ingest.body.raw import Raw
from ingest.body.scheme import load_scheme
from ingest.body.text import load_snake, read_utf8
from ingest.cell.build import CellBuilder
from ingest.cell.writer import serialize_boc
from ingest.errors import BodyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ingest.cell.slice import CellSlice

Fields = dict[str, Any]

TEXT, ENCRYPTED_TEXT = 0x00000000, 0x2167DA4B
MINTER_MINT = 0x00000015
STONFI_SWAP = 0x25938561
_OPCODE_BITS = 32
_ADDRESS = Address()


class ParsedBody(NamedTuple):
    """What kind of body it is, and its fields."""

    kind: str
    fields: Fields


class SentMessage(NamedTuple):
    """A message that a contract is told to send; destination and value are None in a log."""

    destination: str | None
    value: str | None
    body: CellSlice


def read_body(source: CellSlice) -> ParsedBody:
    """Read a body; one of no known kind is ``unknown`` with its opcode and data.

    Raises:
        BocError, BodyError: the opcode is known, but the body is not of its layout.
    """
    start = source.copy()
    if not (source.bits_left or source.refs_left):
        return ParsedBody("ton_transfer", {"comment": "", "encrypted": False})
    if source.bits_left < _OPCODE_BITS:
        return ParsedBody("unknown", {"opcode": 0, "data": encode_rest(start)})
    opcode = source.load_uint(_OPCODE_BITS)
    kind, read = _KINDS.get(opcode, ("unknown", None))
    if read is None:
        return ParsedBody(kind, {"opcode": opcode, "data": encode_rest(start)})
    return ParsedBody(kind, read(source))


def read_message(source: CellSlice) -> SentMessage:
    """Read a message that is to be sent. TL-B: message$_, CommonMsgInfoRelaxed.

    Raises:
        BocError, BodyError: it is none.
    """
    value: Any = load_scheme().union("Message").decode(source, Work(source.tree))
    info, body = value["info"], value["body"]["value"]
    body = body.get("cell_reference") if isinstance(body, dict) else body
    if not isinstance(body, Raw):
        raise BodyError("a message without a body")
    is_internal = info["@type"] == "int_msg_info"
    return SentMessage(
        destination=_write_address(info["dest"]) if is_internal else None,
        value=info["value"]["grams"]["amount"]["value"] if is_internal else None,
        body=body.slice(),
    )


def encode_rest(source: CellSlice) -> str:
    """Return what is left of a slice as the bag of one cell, in base64."""
    cell = CellBuilder(source.tree).store_slice(source.copy()).end()
    return encode_cell(source, cell)


def encode_cell(source: CellSlice, cell: int) -> str:
    """Return a cell of the slice's tree as a bag of cells in base64."""
    return encode_bytes(serialize_boc(source.tree, [cell]))


def load_address(source: CellSlice) -> str | None:
    """Read an address as raw text; None for every one that is not standard."""
    return _write_address(_ADDRESS.decode(source, Work(source.tree)))


def _write_address(value: Any) -> str | None:  # noqa: ANN401 - an object of the body codecs
    return f"{value['workchain_id']}:{value['address']}" if value["@type"] == STD else None


def _load_text(source: CellSlice) -> str:
    return read_utf8(load_snake(source, Work(source.tree)))


def _find_comment(body: CellSlice) -> str:
    """Return the text of a body that is a comment, else ""."""
    source = body.copy()
    if source.bits_left < _OPCODE_BITS or source.load_uint(_OPCODE_BITS) != TEXT:
        return ""
    return _load_text(source)


def _load_maybe_cell(source: CellSlice) -> str | None:
    cell = source.load_maybe_ref()
    return None if cell is None else encode_cell(source, cell)


def _load_payload(source: CellSlice) -> CellSlice:
    """Read ``Either Cell ^Cell``; a body that ends before it has the empty one."""
    if source.bits_left and source.load_bit():
        return source.tree.slice(source.load_ref())
    return source


def _read_text(source: CellSlice) -> Fields:
    return {"comment": _load_text(source), "encrypted": False}


def _read_encrypted(source: CellSlice) -> Fields:
    data = load_snake(source, Work(source.tree))
    return {"comment": encode_bytes(data), "encrypted": True}


def _read_query(source: CellSlice) -> Fields:
    return {"query_id": source.load_uint(64)}


def _read_jetton_transfer(source: CellSlice) -> Fields:
    fields = _read_query(source) | {
        "amount": str(source.load_coins()),
        "destination": load_address(source),
        "response": load_address(source),
        "custom_payload": _load_maybe_cell(source),
        "forward_amount": str(source.load_coins()),
        "comment": "",
        "encrypted_comment": False,
        "forward_payload": None,
        "payload_sum_type": "",
        "stonfi_swap_body": None,
    }
    payload = _load_payload(source)
    if payload.bits_left or payload.refs_left:
        fields["forward_payload"] = encode_rest(payload)
        fields |= _read_forward_payload(payload)
    return fields


def _read_forward_payload(payload: CellSlice) -> Fields:
    """Name what travels with jettons; what is of no known layout is just a cell."""
    opcode = payload.load_uint(_OPCODE_BITS) if payload.bits_left >= _OPCODE_BITS else None
    if opcode == TEXT:
        return {"payload_sum_type": "TextComment", "comment": _load_text(payload)}
    if opcode == ENCRYPTED_TEXT:
        comment = _read_encrypted(payload)["comment"]
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


def _read_jetton_burn(source: CellSlice) -> Fields:
    return _read_query(source) | {
        "amount": str(source.load_coins()),
        "response_destination": load_address(source),
    }


def _read_mint(source: CellSlice) -> Fields:
    """Read what minters of both kinds take first: to whom, and the coins that travel along."""
    return _read_query(source) | {
        "to_address": load_address(source),
        "ton_amount": str(source.load_coins()),
    }


def _read_minter_mint(source: CellSlice) -> Fields:
    fields = {"opcode": MINTER_MINT, **_read_mint(source)}
    message = source.tree.slice(source.load_ref())
    message.skip(_OPCODE_BITS)
    return fields | {
        "master_msg_query_id": message.load_uint(64),
        "master_msg_jetton_amount": str(message.load_coins()),
    }


def _read_direct_mint(source: CellSlice) -> Fields:
    """Read the amount of jettons from the message to their wallet, or from where it stands."""
    fields = _read_mint(source)
    if source.refs_left:
        source = source.tree.slice(source.load_ref())
        source.skip(_OPCODE_BITS + 64)
    return fields | {"jetton_amount": str(source.load_coins())}


def _read_nft_transfer(source: CellSlice) -> Fields:
    fields = _read_query(source) | {
        "new_owner": load_address(source),
        "response_destination": load_address(source),
        "custom_payload": _load_maybe_cell(source),
        "forward_amount": str(source.load_coins()),
    }
    payload = _load_payload(source)
    has_payload = payload.bits_left or payload.refs_left
    return fields | {"forward_payload": encode_rest(payload) if has_payload else None}


def _read_change_admin(source: CellSlice) -> Fields:
    return _read_query(source) | {"new_admin_address": load_address(source)}


def _read_change_content(source: CellSlice) -> Fields:
    return _read_query(source) | {"new_metadata_url": _load_text(source)}


def _read_call_to(source: CellSlice) -> Fields:
    fields = _read_query(source) | {
        "to_address": load_address(source),
        "ton_amount": str(source.load_coins()),
    }
    cell = source.load_ref()
    action = source.tree.slice(cell)
    known = action.bits_left >= _OPCODE_BITS and _KINDS.get(action.peek_uint(_OPCODE_BITS))
    return fields | {
        "action_type": known[0] if known else "unknown",
        "action_data": encode_cell(source, cell),
    }


def _read_set_status(source: CellSlice) -> Fields:
    return _read_query(source) | {"new_status": source.load_uint(4)}


def _read_withdraw(source: CellSlice) -> Fields:
    return _read_query(source) | {"coins": str(source.load_coins())}


def _read_change_validator(source: CellSlice) -> Fields:
    return _read_query(source) | {"validator_address": load_address(source)}


def _read_vesting_send(source: CellSlice) -> Fields:
    fields = _read_query(source) | {"send_mode": source.load_uint(8)}
    message = read_message(source.tree.slice(source.load_ref()))
    return fields | {
        "destination": message.destination,
        "value": message.value,
        "message_body": encode_rest(message.body),
        "comment": _find_comment(message.body),
    }


_KINDS: dict[int, tuple[str, Callable[[CellSlice], Fields]]] = {
    TEXT: ("ton_transfer", _read_text),
    ENCRYPTED_TEXT: ("ton_transfer", _read_encrypted),
    0x0F8A7EA5: ("jetton_transfer", _read_jetton_transfer),
    0x595F07BC: ("jetton_burn", _read_jetton_burn),
    MINTER_MINT: ("jetton_mint", _read_minter_mint),
    0x642B7D07: ("jetton_mint", _read_direct_mint),
    0x5FCC3D14: ("nft_transfer", _read_nft_transfer),
    0xD372158C: ("jetton_top_up", _read_query),
    0x6501F354: ("jetton_change_admin", _read_change_admin),
    0xFB88E119: ("jetton_claim_admin", _read_query),
    0xCB862902: ("jetton_change_content", _read_change_content),
    0x235CAF52: ("jetton_call_to", _read_call_to),
    0xEED236D3: ("jetton_set_status", _read_set_status),
    0x00001000: ("single_nominator_withdraw", _read_withdraw),
    0x00001001: ("single_nominator_change_validator", _read_change_validator),
    0xA7733ACD: ("vesting_internal_transfer", _read_vesting_send),
}
"""Kinds of bodies by opcode, with the reader of what follows it."""
