"""Messages as pages show them: what they call, what they carry, and their bodies as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from api.v3.model import Message

MOST_BODY_CHARACTERS = 20_000
"""A decoded body above this is cut on a page; the API has all of it."""


def name_call(message: Message | None) -> str:
    """Return what a message asks for: the name of its op-code, else the op-code itself."""
    if message is None:
        return ""
    name = message.decoded_opcode or _write_opcode(message.opcode)
    return f"bounced {name}".strip() if message.bounced else name


def _write_opcode(opcode: str | int | None) -> str:
    if opcode is None:
        return ""
    return f"0x{opcode & 0xFFFFFFFF:08x}" if isinstance(opcode, int) else opcode


def sum_values(messages: Iterable[Message]) -> int:
    """Return the nanoton that messages carry together."""
    return sum(int(message.value or 0) for message in messages)


def write_body(message: Message) -> str:
    """Return a message's decoded body as indented JSON; "" where no layout fits."""
    content = message.message_content
    if content is None or content.decoded is None:
        return ""
    text = msgspec.json.format(msgspec.json.encode(content.decoded), indent=2).decode()
    if len(text) <= MOST_BODY_CHARACTERS:
        return text
    return f"{text[:MOST_BODY_CHARACTERS]}\n… ({len(text):,} characters in all)"


FILTERS = {"called": name_call, "sent": sum_values, "body": write_body}
