"""Messages in the form of version 2: comments as text, all other bodies as bags of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.api.v2.value import (
    render_account,
    render_address,
    render_base64,
    render_boc,
    render_currencies,
)
from tonlake.ingest.decode.cell.boc import ORDINARY, CellTree, parse_boc
from tonlake.ingest.derive.body.text import read_words
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT_OPCODE = 0
ENCRYPTED_OPCODE = 0x2167DA4B
_OPCODE_BITS = 32
_TEXT_TAGS = {TEXT_OPCODE: "msg.dataText", ENCRYPTED_OPCODE: "msg.dataEncryptedText"}


class Text(NamedTuple):
    """A text body, and its type name in version 2."""

    tag: str
    text: bytes


def render_message(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an ``ext.message``: plain addresses, and the body as text in ``message``."""
    tree = parse_boc(row["body"])
    text = read_text(tree)
    return {
        "@type": "ext.message",
        **_render_fields(row),
        "source": render_address(row["source_workchain"], row["source"]),
        "destination": render_address(row["destination_workchain"], row["destination"]),
        "msg_data": _render_data(tree, text, row["init_state"]),
        **_render_words(tree, text),
    }


def render_message_std(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ``raw.message``: addresses as objects, and no ``message``."""
    tree = parse_boc(row["body"])
    return {
        "@type": "raw.message",
        **_render_fields(row),
        "source": render_account(row["source_workchain"], row["source"]),
        "destination": render_account(row["destination_workchain"], row["destination"]),
        "msg_data": _render_data(tree, read_text(tree), row["init_state"]),
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


def _render_data(tree: CellTree, text: Text | None, init_state: bytes | None) -> dict[str, str]:
    """Return the ``msg_data`` of a body: text, encrypted text, or raw cells."""
    if text is not None:
        return {"@type": text.tag, "text": render_base64(text.text)}
    return {
        "@type": "msg.dataRaw",
        "body": render_boc(tree.data),
        "init_state": render_boc(init_state),
    }


def read_text(tree: CellTree) -> Text | None:
    """Return the text after an opcode, which continues in the first child of each cell.

    Returns:
        None if the opcode differs, or a cell is exotic.
    """
    cell = tree.roots[0]
    if tree.kind(cell) != ORDINARY or tree.bit_length(cell) < _OPCODE_BITS:
        return None
    tag = _TEXT_TAGS.get(tree.slice(cell).load_uint(_OPCODE_BITS))
    if tag is None:
        return None
    start = tree.slice(cell)
    start.skip(_OPCODE_BITS)
    try:
        return Text(tag, read_words(start))
    except BocError:
        return None


def _render_words(tree: CellTree, text: Text | None) -> dict[str, str]:
    """Return ``message``: the comment, or the bits of the body's root in base64 with a newline.

    It is empty for an encrypted comment.
    """
    if text is None:
        bits = read_bits(tree, tree.roots[0])
        return {"message": render_base64(bits) + "\n" if bits else ""}
    if text.tag == _TEXT_TAGS[ENCRYPTED_OPCODE]:
        return {}
    try:
        return {"message": text.text.decode("utf-8")}
    except UnicodeDecodeError:
        return {"message": "", "message_decode_error": "the comment is not UTF-8"}


def read_bits(tree: CellTree, cell: int) -> bytes:
    """Return the data bits of any cell; the unused bits of the last byte are zero."""
    data = tree.payload(cell)
    rest = tree.bit_length(cell) % 8
    if not rest:
        return data
    return data[:-1] + bytes((data[-1] & 0xFF00 >> rest & 0xFF,))
