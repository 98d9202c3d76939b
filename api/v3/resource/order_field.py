"""Fields of the bodies in multisig orders, and bodies about jettons.

Unlike elsewhere, ``query_id`` is a number; amounts are decimal text, addresses raw text, cells
base64. Each reader of a body begins behind the opcode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.api.text.encoding import encode_bytes
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_depth_first
from tonlake.ingest.derive.body.address import STD, Address
from tonlake.ingest.derive.body.codec import Work
from tonlake.ingest.derive.body.raw import Raw
from tonlake.ingest.derive.body.scheme import load_scheme
from tonlake.ingest.derive.body.text import load_snake, read_utf8
from tonlake.ingest.errors import BodyError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice

Fields = dict[str, Any]

OPCODE_BITS = 32
TEXT, ENCRYPTED_TEXT = 0x00000000, 0x2167DA4B
_ADDRESS = Address()


class SentMessage(NamedTuple):
    """A message that a contract is told to send; destination and value are None in a log."""

    destination: str | None
    value: str | None
    body: CellSlice


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
    """Return a cell of the slice's tree as a bag of cells with CRC, in base64."""
    return encode_bytes(serialize_depth_first(source.tree, cell, crc32c=True))


def load_address(source: CellSlice) -> str | None:
    """Read an address as raw text; None for every one that is not standard."""
    return _write_address(_ADDRESS.decode(source, Work(source.tree)))


def _write_address(value: Any) -> str | None:  # noqa: ANN401 - an object of the body codecs
    return f"{value['workchain_id']}:{value['address']}" if value["@type"] == STD else None


def load_text(source: CellSlice) -> str:
    """Read UTF-8 text to the end of the cell and of the chain of its children."""
    return read_utf8(load_snake(source, Work(source.tree)))


def load_maybe_cell(source: CellSlice) -> str | None:
    """Read ``Maybe ^Cell`` as base64."""
    cell = source.load_maybe_ref()
    return None if cell is None else encode_cell(source, cell)


def load_payload(source: CellSlice) -> CellSlice:
    """Read ``Either Cell ^Cell``; a body that ends before it has the empty one."""
    if source.bits_left and source.load_bit():
        return source.tree.slice(source.load_ref())
    return source


def read_encrypted(source: CellSlice) -> Fields:
    """Read an encrypted comment: its bytes in base64."""
    data = load_snake(source, Work(source.tree))
    return {"comment": encode_bytes(data), "encrypted": True}


def read_query(source: CellSlice) -> Fields:
    """Read the query id that most bodies begin with."""
    return {"query_id": source.load_uint(64)}


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
