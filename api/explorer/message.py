"""Messages as pages show them: what they call, and what they carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tonlake.api.v3.layout.message import Message


def name_call(message: Message | None) -> str:
    """Return what a message asks for: the name of its op-code, else the op-code itself."""
    if message is None:
        return ""
    name = message.decoded_opcode or write_opcode(message.opcode)
    return f"bounced {name}".strip() if message.bounced else name


def write_opcode(opcode: str | int | None) -> str:
    """Return an op-code as hex, whatever form the settings give it; "" for none."""
    if opcode is None:
        return ""
    return f"0x{opcode & 0xFFFFFFFF:08x}" if isinstance(opcode, int) else opcode


def sum_values(messages: Iterable[Message]) -> int:
    """Return the nanoton that messages carry together."""
    return sum(int(message.value or 0) for message in messages)


FILTERS = {"called": name_call, "sent": sum_values}
