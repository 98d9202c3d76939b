"""What messages about tokens carry along, and what tokens say of themselves, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.body.body import decode_message_body

if TYPE_CHECKING:
    from typing import TypeAlias

Payload: TypeAlias = dict[str, object]
"""A decoded body: ``@type`` and the fields of its layout."""


def decode_payload(boc: bytes) -> Payload | None:
    """Return what the layouts of bodies say about a payload; None where none fits."""
    tree = parse_boc(boc)
    value = decode_message_body(tree, tree.roots[0], external_in=False).value
    return None if value is None else dict[str, object](value)


def decode_content(text: str | None) -> dict[str, object] | None:
    """Return what a token says of itself (TEP-64); None where that cannot be read."""
    return None if text is None else msgspec.json.decode(text, type=dict[str, object])
