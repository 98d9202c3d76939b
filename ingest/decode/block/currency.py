"""Reads fields of TL-B cells: Grams, other VarUIntegers, CurrencyCollection, MsgAddress.

These and related modules read fields from the bits of a cell as one integer. A position is
``left``, the number of bits after it: reading n bits decreases it by n, and then ``value >> left``
ends with them. Past the end of the cell ``left`` is negative, and shifting by it is a ValueError; a
missing reference is an IndexError. ``TransactionDecoder.decode`` turns both into DecodeError, so
the hot path needs no checks of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.errors import DecodeError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.tree import CellTree


INT64_MAX = (1 << 63) - 1
_CURRENCY_ID_BITS = 32
_AMOUNT_LENGTH_BITS = 5


def read_grams(value: int, left: int) -> tuple[int, int]:
    """Read Grams (VarUInteger 16); return nanoton and the new position."""
    left -= 4
    bits = (value >> left & 15) << 3
    left -= bits
    return value >> left & ((1 << bits) - 1), left


def read_maybe_grams(value: int, left: int) -> tuple[int | None, int]:
    """Read ``Maybe Grams``; return nanoton or None, and the new position."""
    left -= 1
    return read_grams(value, left) if value >> left & 1 else (None, left)


def read_var_uint(value: int, left: int, length_bits: int) -> tuple[int, int]:
    """Read another VarUInteger, whose length field has ``length_bits`` bits."""
    left -= length_bits
    bits = (value >> left & ((1 << length_bits) - 1)) << 3
    left -= bits
    return value >> left & ((1 << bits) - 1), left


def sign_int32(value: int) -> int:
    """Return an unsigned 32-bit integer as a signed one."""
    return value - (1 << 32) if value >> 31 else value


def read_extra_currencies(tree: CellTree, root: int) -> str | None:
    """Return an ExtraCurrencyCollection as JSON, ids ascending, amounts as strings."""
    amounts = {
        str(currency): str(amount.load_var_uint(_AMOUNT_LENGTH_BITS))
        for currency, amount in iter_hashmap(tree, root, _CURRENCY_ID_BITS)
    }
    return msgspec.json.encode(amounts).decode()


Address = tuple[str, int | None, bytes | None, int]
"""Constructor (std, none, extern or var), workchain and account, and the new position.

The account is None for none and extern, and for var unless it has 256 bits: to the node, such an
address is the same as std (``extract_std_address``).
"""

_STD_BITS, _ACCOUNT_BITS = 267, 256
_STD_WORKCHAIN_BITS, _VAR_WORKCHAIN_BITS = 8, 32
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
    left -= 1
    depth = prefix = 0
    if value >> left & 1:
        left -= 5
        depth = value >> left & 31
        if not 0 < depth <= _MAX_ANYCAST_DEPTH:
            raise DecodeError(f"anycast address with a prefix of {depth} bits")
        left -= depth
        prefix = value >> left & ((1 << depth) - 1)
    kind, workchain_bits = "std", _STD_WORKCHAIN_BITS
    if not is_std:
        kind, workchain_bits = "var", _VAR_WORKCHAIN_BITS
        left -= 9
        length = value >> left & 0x1FF
        if length != _ACCOUNT_BITS:
            return kind, None, None, left - workchain_bits - length
    left -= workchain_bits + _ACCOUNT_BITS
    number = value >> left
    workchain = number >> _ACCOUNT_BITS & ((1 << workchain_bits) - 1)
    workchain -= workchain >> (workchain_bits - 1) << workchain_bits
    rest = _ACCOUNT_BITS - depth
    account = (number & ((1 << rest) - 1) | prefix << rest).to_bytes(32, "big")
    return kind, workchain, account, left
