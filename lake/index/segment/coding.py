"""Values as records have them: numbers, and what each is close to. See module ``shape``."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

_GAS_PRICE = 400
"""Nanotons for a unit of gas outside of the masterchain: config parameter 21, gas_price / 65536."""

_LAST_PLACE = 64
_OPCODE_BYTES = 4
_SIGN, _WORD = 1 << 63, 1 << 64


class InBody(NamedTuple):
    """Where in its message's body an opcode stands."""

    place: int


class Around(NamedTuple):
    """What a row may refer to; ``lt_before`` is the own one where there is no row before."""

    account: bytes
    lt: int
    lt_before: int
    now: int
    hash_before: bytes | None
    state_before: bytes | None


def append_number(out: bytearray, number: int) -> None:
    """Append a whole number that is not negative."""
    while number > 0x7F:  # noqa: PLR2004 - seven bits
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def fold(value: int) -> int:
    """Return a signed number of 64 bits as one without sign, small where it was close to 0."""
    if not -_SIGN <= value < _SIGN:
        value = make_signed(value)
    return value << 1 if value >= 0 else ~value << 1 | 1


def make_signed(number: int) -> int:
    """Return the last 64 bits of a number as one with a sign."""
    return (number + _SIGN) % _WORD - _SIGN


@lru_cache(maxsize=256)
def reverse_bits(value: int) -> int:
    """Return a signed number of 64 bits with its bits reversed, without sign."""
    return int(f"{value % _WORD:064b}"[::-1], 2)


def divide_fees(fees: int | None) -> int:
    """Return how much gas was probably used, given what it cost."""
    return fees // _GAS_PRICE if fees is not None and fees > 0 else 0


def base_of(code: str, around: Around, before: int | None) -> int:
    """Return what a number is close to, given its code and the column before."""
    if code == "l":
        return around.lt
    if code == "t":
        return around.now
    if code == "p":
        return around.lt_before
    return divide_fees(before) if code == "g" else 0


def find_opcode(body: bytes | None, opcode: int) -> InBody | None:
    """Return where an opcode stands in its message's body, if it does near its beginning."""
    if body is None or not -(1 << 31) <= opcode < 1 << 31:
        return None
    place = body.find(opcode.to_bytes(_OPCODE_BYTES, "big", signed=True), 0, _LAST_PLACE)
    return InBody(place) if place >= 0 else None
