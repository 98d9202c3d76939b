"""Messages as version 2 shows them: comments as text, everything else as bags of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api.v2.value import (
    render_account,
    render_address,
    render_base64,
    render_boc,
    render_currencies,
)
from ingest.cell.boc import ORDINARY, CellTree, parse_boc

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT_OPCODE = 0
ENCRYPTED_OPCODE = 0x2167DA4B
_OPCODE_BITS = 32
_TEXT_TAGS = {TEXT_OPCODE: "msg.dataText", ENCRYPTED_OPCODE: "msg.dataEncryptedText"}


def render_message(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an ``ext.message``: plain addresses, and the body in words as ``message``."""
    tree = parse_boc(row["body"])
    data = render_data(tree, row["init_state"])
    return {
        "@type": "ext.message",
        **_render_fields(row),
        "source": render_address(row["source_workchain"], row["source"]),
        "destination": render_address(row["destination_workchain"], row["destination"]),
        "msg_data": data,
        **_render_words(tree, data["@type"]),
    }


def render_message_std(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ``raw.message``: addresses as objects, and no ``message``."""
    return {
        "@type": "raw.message",
        **_render_fields(row),
        "source": render_account(row["source_workchain"], row["source"]),
        "destination": render_account(row["destination_workchain"], row["destination"]),
        "msg_data": render_data(parse_boc(row["body"]), row["init_state"]),
    }


def _render_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "hash": render_base64(row["msg_hash"]),
        "value": str(row["value"] or 0),
        "extra_currencies": render_currencies(row["value_extra_currencies"]),
        "fwd_fee": str(row["fwd_fee"] or 0),
        "ihr_fee": "0",
        "created_lt": str(row["created_lt"] or 0),
        "body_hash": render_base64(row["body_hash"]),
    }


def render_data(tree: CellTree, init_state: bytes | None) -> dict[str, str]:
    """Return the ``msg_data`` that fits a body: text, encrypted text, or raw cells."""
    for opcode, tag in _TEXT_TAGS.items():
        text = read_snake(tree, opcode)
        if text is not None:
            return {"@type": tag, "text": render_base64(text)}
    return {
        "@type": "msg.dataRaw",
        "body": render_boc(tree.data),
        "init_state": render_boc(init_state),
    }


def read_snake(tree: CellTree, opcode: int) -> bytes | None:
    """Return the bytes after ``opcode``, which go on in the first child of each cell.

    Returns:
        None where the opcode is another, the bits are no whole bytes, or a cell is exotic.
    """
    cell = tree.roots[0]
    if tree.kind(cell) != ORDINARY or tree.bit_length(cell) < _OPCODE_BITS:
        return None
    if tree.slice(cell).load_uint(_OPCODE_BITS) != opcode:
        return None
    value, bits = tree.bits(cell)
    while tree.refs(cell):
        cell = tree.refs(cell)[0]
        if tree.kind(cell) != ORDINARY:
            return None
        more, length = tree.bits(cell)
        value, bits = value << length | more, bits + length
    if bits % 8:
        return None
    return value.to_bytes(bits // 8, "big")[_OPCODE_BITS // 8 :]


def _render_words(tree: CellTree, tag: str) -> dict[str, str]:
    """Return ``message``: the comment, or the bits of the body's root in base64 and a newline.

    An encrypted comment has none: its bytes are no text.
    """
    if tag == _TEXT_TAGS[ENCRYPTED_OPCODE]:
        return {}
    if tag != _TEXT_TAGS[TEXT_OPCODE]:
        bits = read_bits(tree, tree.roots[0])
        return {"message": render_base64(bits) + "\n" if bits else ""}
    try:
        return {"message": (read_snake(tree, TEXT_OPCODE) or b"").decode("utf-8")}
    except UnicodeDecodeError:
        return {"message": "", "message_decode_error": "the comment is not UTF-8"}


def read_bits(tree: CellTree, cell: int) -> bytes:
    """Return the data bits of any cell; the unused bits of the last byte are zero."""
    data = tree.payload(cell)
    rest = tree.bit_length(cell) % 8
    if not rest:
        return data
    return data[:-1] + bytes((data[-1] & 0xFF00 >> rest & 0xFF,))
