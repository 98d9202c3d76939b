"""Reads the data cells of wallets of the known versions.

Layouts (only the leading fields that are read): v1 and v2 ``seqno:uint32 public_key:bits256``; v3
and v4 ``seqno:uint32 wallet_id:int32 public_key:bits256``; v5 beta ``seqno:uint33 wallet_id:bits80
public_key:bits256``; v5 ``is_signature_allowed:Bool seqno:uint32 wallet_id:int32
public_key:bits256``; highload v1 as v3, v2 ``wallet_id:uint32 last_cleaned:uint64
public_key:bits256``, v3 ``public_key:bits256 wallet_id:uint32``; vesting as v3; preprocessed v2
``public_key:bits256 seqno:uint16``.
"""

from typing import Any

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.record import load_interfaces
from tonlake.ingest.errors import BocError

Layout = tuple[tuple[str, int, bool], ...]
"""Column, number of bits and signedness of each field; "" is skipped, a key is bytes."""

Fields = dict[str, Any]
"""Columns of ``wallets``, without those about the account."""

_SEQNO, _WALLET_ID, _KEY = ("seqno", 32, False), ("wallet_id", 32, True), ("public_key", 256, False)
_ALLOWED, _UNSIGNED_ID = ("is_signature_allowed", 1, False), ("wallet_id", 32, False)
_PLAIN: Layout = (_SEQNO, _KEY)
_NUMBERED: Layout = (_SEQNO, _WALLET_ID, _KEY)
_HIGHLOAD_V2: Layout = (_UNSIGNED_ID, ("", 64, False), _KEY)
# v5 beta is read as TON Center does: the leading bits of its 33 and 80 hold the fields of v5.
_V5_BETA: Layout = (_ALLOWED, _SEQNO, _WALLET_ID, ("", 33 + 80 - 65, False), _KEY)

_LAYOUTS: dict[str, Layout] = {
    **dict.fromkeys(("wallet_v1r1", "wallet_v1r2", "wallet_v1r3"), _PLAIN),
    **dict.fromkeys(("wallet_v2r1", "wallet_v2r2"), _PLAIN),
    **dict.fromkeys(("wallet_v3r1", "wallet_v3r2", "wallet_v4r1", "wallet_v4r2"), _NUMBERED),
    **dict.fromkeys(("wallet_highload_v1r1", "wallet_highload_v1r2"), _NUMBERED),
    **dict.fromkeys(("wallet_highload_v2", "wallet_highload_v2r1"), _HIGHLOAD_V2),
    "wallet_highload_v2r2": _HIGHLOAD_V2,
    "wallet_highload_v3r1": (_KEY, _UNSIGNED_ID),
    "wallet_v5_beta": _V5_BETA,
    "wallet_v5r1": (_ALLOWED, *_NUMBERED),
    "wallet_vesting": _NUMBERED,
    "wallet_preprocessed_v2": (_KEY, ("seqno", 16, False)),
}


def read_wallet(code_hash: bytes, start: CellSlice | None) -> Fields | None:
    """Return the fields of a known wallet, None for another code; no ``start``: unreadable data."""
    kind = load_interfaces().by_code.get(code_hash, "")
    if kind not in _LAYOUTS:
        return None
    columns = ("seqno", "wallet_id", "public_key", "is_signature_allowed")
    unknown: Fields = {"kind": kind, **dict.fromkeys(columns)}
    if start is None:
        return unknown
    fields = dict(unknown)
    try:
        for column, bits, is_signed in _LAYOUTS[kind]:
            if not column:
                start.skip(bits)
            elif column == "public_key":
                fields[column] = start.load_bytes(bits // 8)
            else:
                number = start.load_int(bits) if is_signed else start.load_uint(bits)
                fields[column] = bool(number) if bits == 1 else number
    except BocError:
        return unknown
    return fields
