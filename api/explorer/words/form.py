"""How pages write amounts, times, hashes, messages and bodies; most are filters of templates."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tonlake.ingest.derive.body.body import name_opcode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tonlake.api.v3.layout.message import Message

NANO_DIGITS = 9
"""Decimal places of TON: amounts are nanoton."""

LEAST_BRIEF_NANO = 10**6
"""What is smaller is nothing at three decimals."""

MOST_DIGITS = 255
"""Decimal places that a jetton may claim (TEP-64 gives them one byte)."""

_UNITS = ("B", "kB", "MB", "GB", "TB")
_STEP = 1000
_TYPE = "@type"


def write_units(amount: str | int | None, digits: int = NANO_DIGITS) -> str:
    """Return an amount of smallest units with its decimal places, thousands set apart."""
    if amount is None:
        return "unknown"
    number = int(amount)
    sign, number = ("-", -number) if number < 0 else ("", number)
    digits = min(max(digits, 0), MOST_DIGITS)
    whole, rest = divmod(number, 10**digits)
    fraction = str(rest).rjust(digits, "0").rstrip("0") if rest else ""
    return f"{sign}{whole:,}" + (f".{fraction}" if fraction else "")


def write_ton(nano: str | int | None) -> str:
    """Return nanoton as TON."""
    return "unknown" if nano is None else f"{write_units(nano)} TON"


def write_brief(nano: str | int) -> str:
    """Return nanoton as TON with at most three decimals, for pictures."""
    nano = int(nano)
    if 0 < nano < LEAST_BRIEF_NANO:
        return "< 0.001 TON"
    return f"{nano / 10**NANO_DIGITS:,.3f}".rstrip("0").rstrip(".") + " TON"


def write_count(number: str | int) -> str:
    """Return a number, thousands set apart."""
    return f"{int(number):,}"


def write_moment(utime: str | int) -> str:
    """Return Unix seconds as date and time of day, UTC."""
    return read_moment(utime).strftime("%Y-%m-%d %H:%M:%S")


def write_iso(utime: str | int) -> str:
    """Return Unix seconds for machines (ISO 8601)."""
    return read_moment(utime).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_moment(utime: str | int) -> datetime:
    """Return the moment of Unix seconds."""
    return datetime.fromtimestamp(int(utime), UTC)


def write_bytes(size: float) -> str:
    """Return a size in the unit that suits it."""
    unit = 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{size:,.0f} {_UNITS[unit]}" if unit == 0 else f"{size:,.1f} {_UNITS[unit]}"


def write_duration(seconds: float) -> str:
    """Return a span of time in its largest unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{max(0, seconds):,.0f} s"


def write_hex(text: str) -> str:
    """Return a hash in base64 as hex; other text stays as it is."""
    try:
        return base64.b64decode(text, validate=True).hex()
    except (binascii.Error, ValueError):
        return text


def clip(text: str, most: int) -> str:
    """Return the beginning of a text that is too long."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shorten(text: str, keep: int = 6) -> str:
    """Return the two ends of a long text."""
    return text if len(text) <= 2 * keep + 1 else f"{text[:keep]}…{text[-keep:]}"


LEAST_OWN_OPCODE = 256


def name_call(message: Message | None) -> str:
    """Return what a message asks for: the name of its op-code, else the op-code itself.

    A message from outside has no op-code by convention, most begin with a signature: it is called
    after its layout. Op-codes below 256 are numbered by anybody: their name counts where the body
    follows its layout.
    """
    if message is None:
        return ""
    if message.decoded_opcode is None and not message.source and message.destination:
        return _name_layout(message) or "external message"
    opcode, number = write_opcode(message.opcode), read_opcode(message.opcode)
    name = message.decoded_opcode or opcode
    if number and number < LEAST_OWN_OPCODE and _name_layout(message) != name:
        name = opcode
    # The op-code of a body that bounced is itself named so.
    return f"bounced {name.removeprefix('bounce')}".strip() if message.bounced else name


def _name_layout(message: Message) -> str:
    """Return the name of the layout that a message's body follows; "" where none fits."""
    content = message.message_content
    decoded = None if content is None else content.decoded
    return str(decoded.get(_TYPE, "")) if isinstance(decoded, dict) else ""


def write_kind(kind: str) -> str:
    """Return the kind of a transaction (TL-B ``TransactionDescr``) in a word."""
    return "ordinary" if kind == "ord" else kind.replace("_", "-")


def write_opcode(opcode: str | int | None) -> str:
    """Return an op-code as hex, whatever form the settings give it; "" for none."""
    if opcode is None:
        return ""
    return f"0x{opcode & 0xFFFFFFFF:08x}" if isinstance(opcode, int) else opcode


def read_opcode(opcode: str | int | None) -> int | None:
    """Return an op-code as an unsigned number; None for none."""
    text = write_opcode(opcode)
    return int(text, 16) & 0xFFFFFFFF if text.startswith("0x") else None


def describe_opcode(opcode: str | int | None) -> str:
    """Return the name of an op-code, else the op-code; those below 256 are numbered by anybody."""
    number = read_opcode(opcode)
    name = name_opcode(number) if number and number >= LEAST_OWN_OPCODE else None
    return name or f"opcode {write_opcode(opcode)}"


def sum_values(messages: Iterable[Message]) -> int:
    """Return the nanoton that messages carry together."""
    return sum(int(message.value or 0) for message in messages)


FILTERS: dict[str, Callable[..., Any]] = {
    "ton": write_ton,
    "units": write_units,
    "brief": write_brief,
    "count": write_count,
    "moment": write_moment,
    "iso": write_iso,
    "bytes": write_bytes,
    "duration": write_duration,
    "hex": write_hex,
    "shorten": shorten,
    "called": name_call,
    "kind": write_kind,
    "sent": sum_values,
}
