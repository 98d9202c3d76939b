"""Addresses in messages. TL-B: MsgAddressExt, MsgAddressInt, Anycast.

addr_none$00, addr_extern$01, addr_std$10 and addr_var$11 are read wherever an address stands.
Places in cells: see module ``currency``.
"""

from __future__ import annotations

from tonlake.ingest.errors import DecodeError

Address = tuple[str, int | None, bytes | None, int]
"""Constructor (std, none, extern or var), workchain and account of std, and the new place."""

_STD_BITS = 267
_MASK_256 = (1 << 256) - 1
_MAX_ANYCAST_DEPTH = 30
_PLAIN_STD = 0b100
_NONE, _EXTERN, _STD = 0, 1, 2


def read_address(value: int, left: int) -> Address:
    """Read any MsgAddress that is not the last field of its cell."""
    if value >> (left - 3) & 7 == _PLAIN_STD:
        left -= _STD_BITS
        number = value >> left
        workchain = number >> 256 & 0xFF
        account = (number & _MASK_256).to_bytes(32, "big")
        return "std", workchain - (workchain >> 7 << 8), account, left
    left -= 2
    tag = value >> left & 3
    if tag == _NONE:
        return "none", None, None, left
    if tag == _EXTERN:
        left -= 9
        return "extern", None, None, left - (value >> left & 0x1FF)
    return _read_internal(value, left, is_std=tag == _STD)


def _read_internal(value: int, left: int, *, is_std: bool) -> Address:
    """Read what follows the tag of addr_std or addr_var, with an anycast part."""
    left -= 1
    depth = prefix = 0
    if value >> left & 1:
        left -= 5
        depth = value >> left & 31
        if not 0 < depth <= _MAX_ANYCAST_DEPTH:
            raise DecodeError(f"anycast address with a prefix of {depth} bits")
        left -= depth
        prefix = value >> left & ((1 << depth) - 1)
    if not is_std:
        left -= 9
        return "var", None, None, left - 32 - (value >> left & 0x1FF)
    left -= _STD_BITS - 3
    number = value >> left
    workchain = number >> 256 & 0xFF
    rest = 256 - depth
    account = (number & ((1 << rest) - 1) | prefix << rest).to_bytes(32, "big")
    return "std", workchain - (workchain >> 7 << 8), account, left
