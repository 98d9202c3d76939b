"""Decodes bodies to JSON, in C where possible."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.body.body import (
    SIGNED,
    WALLET,
    decode_message_body,
    name_opcode,
)
from tonlake.ingest.derive.body.native import NATIVE
from tonlake.ingest.derive.body.program import Program
from tonlake.ingest.derive.body.scheme import load_scheme
from tonlake.ingest.errors import BocError

_PLAIN_COMMENT = b'{"@type":"text_comment","text":'
_COMMENT = b'{"type":"text_comment","@type":"text_comment","comment":'


class Encoded(NamedTuple):
    """A body decoded as by ``decode_message_body``, with the object as JSON."""

    name: str | None
    json: bytes | None


NOTHING = Encoded(None, None)


def encode_body(body: bytes, *, external_in: bool) -> Encoded:
    """Decode the bag of a message's body; a damaged one yields ``NOTHING``.

    Native code follows the compiled layouts; the codecs decode what it declines.
    """
    decoder = _make_decoder()
    found = None if decoder is None else NATIVE.decode(decoder, body, external_in)
    if found is None:
        return encode_by_codecs(body, external_in=external_in)
    opcode, json = found
    if json is not None and json.startswith(_PLAIN_COMMENT):
        json = _COMMENT + json[len(_PLAIN_COMMENT) :]
    return Encoded(None if opcode < 0 else name_opcode(opcode), json)


def encode_by_codecs(body: bytes, *, external_in: bool) -> Encoded:
    """Decode as ``encode_body`` does, in Python alone."""
    try:
        tree = parse_boc(body)
    except BocError:
        # Recorded traces may hold anything as a body.
        return NOTHING
    name, value = decode_message_body(tree, tree.roots[0], external_in=external_in)
    return Encoded(name, None if value is None else msgspec.json.encode(value))


@cache
def _make_decoder() -> Any:  # noqa: ANN401 - of the extension, or None
    if NATIVE is None:
        return None
    scheme = load_scheme()
    unions = (scheme.union(SIGNED), scheme.union(WALLET))
    return NATIVE.make(*Program().link(scheme.layouts, unions))
