"""Decoded bodies and payloads of messages, and TEP-64 content."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tonlake.api.chain.cells import add_checksum
from tonlake.api.text.encoding import encode_bytes
from tonlake.api.v3.layout.message import EXTERNAL, MessageContent
from tonlake.ingest.derive.body.body import NOTHING, decode_message_body, name_opcode
from tonlake.ingest.derive.body.scheme import load_scheme

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

CACHED_BODIES = 8192
"""How many written bodies are cached: each occurs twice, where it is sent and received."""


class Body(NamedTuple):
    """A body as JSON, and the name of its opcode."""

    content: MessageContent
    opcode_name: str | None


@cache
def list_opcodes() -> frozenset[int]:
    """Return the opcodes that have a name; bodies with other opcodes are not decoded."""
    return frozenset(filter(name_opcode, load_scheme().layouts))


class Written(NamedTuple):
    """JSON of a body's opcode name and of the body, and the input it was made from."""

    name: bytes
    content: bytes
    body: bytes | None
    may_follow: bool


KEPT: dict[bytes, Written] = {}
"""Cache of written bodies by hash; the extension reads it before it calls ``write_body``."""


def write_body(row: Mapping[str, Any]) -> Written:
    """Return opcode name and body as JSON, and add them to the cache."""
    body_hash, body, kind = row["body_hash"], row["body"], row["kind"]
    found = _decode_body(body_hash, body, kind)
    texts = msgspec.json.encode(found.opcode_name), msgspec.json.encode(found.content)
    written = Written(*texts, body, kind == EXTERNAL)
    if len(KEPT) >= CACHED_BODIES:
        KEPT.clear()
    KEPT[body_hash] = written
    return written


@lru_cache(maxsize=CACHED_BODIES)
def read_body(body_hash: bytes, body: bytes | None, kind: str) -> Body:
    """Return the decoded body, one object shared by all its messages."""
    return _decode_body(body_hash, body, kind)


def _decode_body(body_hash: bytes, body: bytes | None, kind: str) -> Body:
    found = NOTHING if body is None else decode_message_body(body, external_in=kind == EXTERNAL)
    shown = None if found.json is None else msgspec.json.decode(found.json, type=dict[str, object])
    text = None if body is None else encode_bytes(add_checksum(body))
    return Body(MessageContent(encode_bytes(body_hash), text, shown), found.name)


Payload: TypeAlias = dict[str, object]
"""A decoded body: ``@type`` and the fields of its layout."""


def decode_payload(boc: bytes) -> Payload | None:
    """Return the decoded payload; None if no layout matches."""
    return decode_message_body(boc, external_in=False).value


def decode_content(text: str | None) -> dict[str, object] | None:
    """Return the content of a token (TEP-64); None if it is unreadable."""
    return None if text is None else msgspec.json.decode(text, type=dict[str, object])
