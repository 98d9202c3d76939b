"""A message as version 3 writes it, from a row of ``messages``."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET

from api.cells import add_checksum
from api.encoding import (
    decode_currencies,
    encode_account,
    encode_bytes,
    encode_number,
    encode_opcode,
    encode_optional,
)
from api.v3 import model
from ingest.body.body import Decoded, decode_message_body, name_opcode
from ingest.body.glance import peek_opcode
from ingest.cell.boc import parse_boc

if TYPE_CHECKING:
    from ingest.body.codec import Object

Row = dict[str, Any]

CACHED_BODIES = 8192
"""Bodies kept as they were written: a body comes twice, where it is sent and consumed."""


def render_message(row: Row, opcode_format: str) -> model.Message:
    """Return the message of a row; ``opcode_format`` is ``hex`` or ``integer``.

    ``in_tx_hash`` and ``out_tx_hash`` of the row, where it has them, are the transactions that
    consumed and produced it.
    """
    norm = row["hash_norm"]
    body = _render_body(row["body_hash"], row["body"], row["kind"])
    init_hash = row["init_state_hash"]
    return model.Message(
        hash=encode_bytes(row["msg_hash"]),
        source=encode_account(row["source_workchain"], row["source"]),
        destination=encode_account(row["destination_workchain"], row["destination"]),
        value=encode_number(row["value"]),
        value_extra_currencies=(
            decode_currencies(row["value_extra_currencies"]) if row["kind"] == "int" else None
        ),
        fwd_fee=encode_number(row["fwd_fee"]),
        ihr_fee=encode_number(row["ihr_fee"]),
        extra_flags=encode_number(row["extra_flags"]),
        created_lt=encode_number(row["created_lt"]),
        created_at=encode_number(row["created_at"]),
        opcode=encode_opcode(row["opcode"], opcode_format),
        decoded_opcode=body.opcode_name,
        ihr_disabled=row["ihr_disabled"],
        bounce=row["bounce"],
        bounced=row["bounced"],
        import_fee=encode_number(row["import_fee"]),
        message_content=body.content,
        init_state=None if init_hash is None else render_content(init_hash, row["init_state"]),
        in_msg_tx_hash=encode_optional(row.get("in_tx_hash")) or UNSET,
        out_msg_tx_hash=encode_optional(row.get("out_tx_hash")) or UNSET,
        hash_norm=UNSET if norm is None or norm == row["msg_hash"] else encode_bytes(norm),
    )


def write_body(row: Row) -> bytes:
    """Return the fields ``decoded_opcode`` and ``message_content`` of a message as JSON."""
    return _write_body(row["body_hash"], row["body"], row["kind"])


@lru_cache(maxsize=CACHED_BODIES)
def _write_body(body_hash: bytes, body: bytes | None, kind: str) -> bytes:
    content, opcode_name = _read_body(body_hash, body, kind)
    name, text = msgspec.json.encode(opcode_name), msgspec.json.encode(content)
    return b'"decoded_opcode":%b,"message_content":%b' % (name, text)


class _Body(NamedTuple):
    """A body as it is written, and the name of its opcode."""

    content: model.MessageContent
    opcode_name: str | None


@lru_cache(maxsize=CACHED_BODIES)
def _render_body(body_hash: bytes, body: bytes | None, kind: str) -> _Body:
    """Return a body; the same for all its messages."""
    return _read_body(body_hash, body, kind)


def _read_body(body_hash: bytes, body: bytes | None, kind: str) -> _Body:
    """Return a body with what the layouts of bodies say about it."""
    decoded = Decoded(None, None)
    if body is not None and (kind == "ext_in" or not _is_unknown(body)):
        tree = parse_boc(body)
        decoded = decode_message_body(tree, tree.roots[0], external_in=kind == "ext_in")
    return _Body(render_content(body_hash, body, decoded.value), decoded.name)


def _is_unknown(body: bytes) -> bool:
    """Tell whether a body begins with an opcode of no layout, so that nothing is to be decoded."""
    opcode = peek_opcode(body)
    return opcode is not None and name_opcode(opcode) is None


def render_content(
    cell_hash: bytes, boc: bytes | None, decoded: Object | None = None
) -> model.MessageContent:
    """Return a cell of a message, with what is known of its contents."""
    body = None if boc is None else encode_bytes(add_checksum(boc))
    shown = None if decoded is None else dict[str, object](decoded)
    return model.MessageContent(hash=encode_bytes(cell_hash), body=body, decoded=shown)
