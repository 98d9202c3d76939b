"""Formats amounts, times, hashes, messages and opcodes; most functions are template filters."""

import base64
import binascii
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from tonlake.api.text.encoding import encode_v3
from tonlake.api.v3.layout.transaction import Message
from tonlake.ingest.derive.body.body import name_opcode
from tonlake.ingest.derive.body.scheme import MIN_HASHED
from tonlake.ingest.derive.tvm.call import StackValue

NANO_DIGITS = 9
"""Decimal places of TON: amounts are in nanoton."""

MIN_BRIEF_NANO = 10**6
"""Smaller amounts round to zero at three decimals."""

MAX_DIGITS = 255
"""Maximum decimal places of a jetton (TEP-64 stores them in one byte)."""

MAX_STACK_CHARACTERS = 20_000
_UNITS = ("B", "kB", "MB", "GB", "TB")
_STEP = 1000
_TYPE = "@type"


def write_units(amount: str | int | None, digits: int = NANO_DIGITS) -> str:
    """Format an amount in smallest units with decimal places and thousands separators."""
    if amount is None:
        return "unknown"
    number = int(amount)
    sign, number = ("-", -number) if number < 0 else ("", number)
    digits = min(max(digits, 0), MAX_DIGITS)
    whole, rest = divmod(number, 10**digits)
    fraction = str(rest).rjust(digits, "0").rstrip("0") if rest else ""
    return f"{sign}{whole:,}" + (f".{fraction}" if fraction else "")


def write_ton(nano: str | int | None) -> str:
    """Format nanoton as TON."""
    return "unknown" if nano is None else f"{write_units(nano)} TON"


def write_brief(nano: str | int) -> str:
    """Format nanoton as TON with at most three decimals, for charts."""
    nano = int(nano)
    if 0 < nano < MIN_BRIEF_NANO:
        return "< 0.001 TON"
    return f"{nano / 10**NANO_DIGITS:,.3f}".rstrip("0").rstrip(".") + " TON"


def write_count(number: str | int) -> str:
    """Format a number with thousands separators."""
    return f"{int(number):,}"


def write_moment(utime: str | int) -> str:
    """Format Unix seconds as date and time in UTC."""
    return read_moment(utime).strftime("%Y-%m-%d %H:%M:%S")


def write_iso(utime: str | int) -> str:
    """Format Unix seconds as ISO 8601."""
    return read_moment(utime).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_moment(utime: str | int) -> datetime:
    """Convert Unix seconds to a datetime in UTC."""
    return datetime.fromtimestamp(int(utime), UTC)


def write_bytes(size: float) -> str:
    """Format a size in bytes with a decimal unit."""
    unit = 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{size:,.0f} {_UNITS[unit]}" if unit == 0 else f"{size:,.1f} {_UNITS[unit]}"


def write_duration(seconds: float) -> str:
    """Format a duration in its largest suitable unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{max(0, seconds):,.0f} s"


def write_hex(text: str) -> str:
    """Convert a base64 hash to hex; return other text unchanged."""
    try:
        return base64.b64decode(text, validate=True).hex()
    except (binascii.Error, ValueError):
        return text


def clip(text: str, most: int) -> str:
    """Truncate ``text`` to ``most`` characters, with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shorten(text: str, keep: int = 6) -> str:
    """Abbreviate a long text to its first and last ``keep`` characters."""
    return text if len(text) <= 2 * keep + 1 else f"{text[:keep]}…{text[-keep:]}"


def name_call(message: Message | None) -> str:
    """Return the name of the operation that a message requests, or its opcode.

    External messages have no opcode by convention (most begin with a signature) and are named by
    their layout. Opcodes below 65536 are numbers that contracts share, and named by the layout of
    the body, if it has one.
    """
    if message is None:
        return ""
    if message.decoded_opcode is None and not message.source and message.destination:
        return _name_layout(message) or "external message"
    opcode, number = write_opcode(message.opcode), read_opcode(message.opcode)
    name = message.decoded_opcode or opcode
    if number and number < MIN_HASHED:
        name = _name_layout(message) or opcode
    # The decoded opcode of a bounced body is "bounce" or "new_bounce".
    name_inside = name.removeprefix("new_").removeprefix("bounce")
    return f"bounced {name_inside}".strip() if message.bounced else name


def _name_layout(message: Message) -> str:
    """Return the name of the layout of a message's body; "" if none matches."""
    content = message.message_content
    decoded = None if content is None else content.decoded
    return str(decoded.get(_TYPE, "")) if isinstance(decoded, dict) else ""


def write_kind(kind: str) -> str:
    """Format the kind of a transaction (TL-B ``TransactionDescr``) as a word."""
    return "ordinary" if kind == "ord" else kind.replace("_", "-")


def write_opcode(opcode: str | int | None) -> str:
    """Format an opcode as hex, whichever format the settings use; "" for None."""
    if opcode is None:
        return ""
    return f"0x{opcode & 0xFFFFFFFF:08x}" if isinstance(opcode, int) else opcode


def read_opcode(opcode: str | int | None) -> int | None:
    """Return an opcode as an unsigned number; None if there is none."""
    text = write_opcode(opcode)
    return int(text, 16) & 0xFFFFFFFF if text.startswith("0x") else None


def describe_opcode(opcode: str | int | None) -> str:
    """Return the name of an opcode, or its hex form; those below 65536 are not unique."""
    number = read_opcode(opcode)
    name = name_opcode(number) if number and number >= MIN_HASHED else None
    return name or f"opcode {write_opcode(opcode)}"


def sum_values(messages: Iterable[Message]) -> int:
    """Return the total value of ``messages`` in nanoton."""
    return sum(int(message.value or 0) for message in messages)


def write_stack(values: Iterable[StackValue]) -> str:
    """Format the result of a get-method as JSON in the form of API v3, cut if it is long."""
    text = msgspec.json.encode([encode_v3(value) for value in values])
    return msgspec.json.format(text, indent=2).decode()[:MAX_STACK_CHARACTERS]


FILTERS: dict[str, Callable[..., Any]] = {
    "ton": write_ton,
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
    "stack": write_stack,
}
