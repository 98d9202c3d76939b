"""Amounts: Grams, other VarUIntegers, and CurrencyCollection.

Fields here and in the modules beside are read from the bits of a cell taken as one integer. A
place in the cell is ``left``, the number of bits after it: reading n bits takes n from it, and then
``value >> left`` ends with them. Past the end of the cell ``left`` is negative, and Python refuses
to shift by that with ValueError; a reference that is not there is an IndexError. The border of
this package (``transaction.bordered``) turns both into DecodeError, so that the hot path needs no
check of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.decode.cell.dictionary import iter_hashmap

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.tree import CellTree

INT64_MAX = (1 << 63) - 1
_CURRENCY_ID_BITS = 32
_AMOUNT_LENGTH_BITS = 5


def read_grams(value: int, left: int) -> tuple[int, int]:
    """Read Grams (VarUInteger 16); return nanoton and the new place."""
    left -= 4
    bits = (value >> left & 15) << 3
    left -= bits
    return value >> left & ((1 << bits) - 1), left


def read_maybe_grams(value: int, left: int) -> tuple[int | None, int]:
    """Read ``Maybe Grams``."""
    left -= 1
    return read_grams(value, left) if value >> left & 1 else (None, left)


def read_var_uint7(value: int, left: int) -> tuple[int, int]:
    """Read VarUInteger 7, whose length field has 3 bits."""
    left -= 3
    bits = (value >> left & 7) << 3
    left -= bits
    return value >> left & ((1 << bits) - 1), left


def read_var_uint3(value: int, left: int) -> tuple[int, int]:
    """Read VarUInteger 3, whose length field has 2 bits."""
    left -= 2
    bits = (value >> left & 3) << 3
    left -= bits
    return value >> left & ((1 << bits) - 1), left


def sign_int32(value: int) -> int:
    """Return the signed number of 32 bits."""
    return value - (1 << 32) if value >> 31 else value


def read_extra_currencies(tree: CellTree, root: int) -> str | None:
    """Return an ExtraCurrencyCollection as JSON text, ids ascending, amounts as text.

    TL-B: extra_currencies$_ dict:(HashmapE 32 (VarUInteger 32)); ``root`` is the map's root cell.
    """
    amounts = {
        str(currency): str(amount.load_var_uint(_AMOUNT_LENGTH_BITS))
        for currency, amount in iter_hashmap(tree, root, _CURRENCY_ID_BITS)
    }
    return msgspec.json.encode(amounts).decode()
