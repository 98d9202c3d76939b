"""Fields of message bodies in multisig orders.

Unlike elsewhere, ``query_id`` is a number; amounts are decimal text, addresses raw text, cells
base64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tonlake.api.text.encoding import encode_bytes
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_depth_first
from tonlake.ingest.derive.body.codec import Work
from tonlake.ingest.derive.body.scheme import load_scheme
from tonlake.ingest.derive.body.simple import STD, Address
from tonlake.ingest.derive.body.text import load_snake, read_utf8

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice

Fields = dict[str, Any]

OPCODE_BITS = 32
TEXT, ENCRYPTED_TEXT = 0x00000000, 0x2167DA4B
_ADDRESS = Address()


class SentMessage(NamedTuple):
    """A message to send; destination and value are None for a log message."""

    destination: str | None
    value: str | None
    body: CellSlice


def read_message(source: CellSlice) -> SentMessage:
    """Read a message to send. TL-B: message$_, CommonMsgInfoRelaxed.

    Raises:
        BocError, BodyError: the cell is not such a message.
    """
    work = Work(source.tree, {})
    info = _read_value("CommonMsgInfoRelaxed", source, work)
    if source.load_bit():  # Maybe (Either StateInit ^StateInit)
        if source.load_bit():
            source.load_ref()
        else:
            _read_value("StateInit", source, work)
    is_internal = info["@type"] == "int_msg_info"
    return SentMessage(
        destination=_write_address(info["dest"]) if is_internal else None,
        value=info["value"]["grams"]["amount"]["value"] if is_internal else None,
        body=load_payload(source),
    )


def _read_value(type_name: str, source: CellSlice, work: Work) -> Any:  # noqa: ANN401 - an object
    return msgspec.json.decode(load_scheme().union(type_name).decode(source, work))


def encode_rest(source: CellSlice) -> str:
    """Return the rest of a slice as a base64 bag with one cell."""
    cell = CellBuilder(source.tree).store_slice(source.copy()).end()
    return encode_cell(source, cell)


def encode_cell(source: CellSlice, cell: int) -> str:
    """Return a cell as a base64 bag of cells with CRC."""
    return encode_bytes(serialize_depth_first(source.tree, cell, crc32c=True))


def load_address(source: CellSlice) -> str | None:
    """Read an address as raw text; None if it is not ``addr_std``."""
    return _write_address(msgspec.json.decode(_ADDRESS.decode(source, Work(source.tree, {}))))


def _write_address(value: Any) -> str | None:  # noqa: ANN401 - an object of the body codecs
    return f"{value['workchain_id']}:{value['address']}" if value["@type"] == STD else None


def load_coins(source: CellSlice) -> str:
    """Read Coins as decimal text."""
    return str(source.load_coins())


def load_text(source: CellSlice) -> str:
    """Read UTF-8 text to the end of the cell and its chain of children."""
    return read_utf8(load_snake(source, Work(source.tree, {})))


def load_maybe_cell(source: CellSlice) -> str | None:
    """Read ``Maybe ^Cell`` as base64."""
    cell = source.load_maybe_ref()
    return None if cell is None else encode_cell(source, cell)


def load_payload(source: CellSlice) -> CellSlice:
    """Read ``Either Cell ^Cell``; the empty cell if the body ends before it."""
    if source.bits_left and source.load_bit():
        return source.tree.slice(source.load_ref())
    return source


def read_encrypted(source: CellSlice) -> Fields:
    """Read an encrypted comment: its bytes in base64."""
    data = load_snake(source, Work(source.tree, {}))
    return {"comment": encode_bytes(data), "encrypted": True}


def read_query(source: CellSlice) -> Fields:
    """Read the query id with which most bodies begin."""
    return {"query_id": source.load_uint(64)}
