"""Wallets of the known versions, read from their data cells.

Layouts (the beginning, as far as it is read): v1 and v2 ``seqno:uint32 public_key:bits256``; v3 and
v4 ``seqno:uint32 wallet_id:int32 public_key:bits256``; v5 beta ``seqno:uint33 wallet_id:bits80
public_key:bits256``; v5 ``is_signature_allowed:Bool seqno:uint32 wallet_id:int32
public_key:bits256``; highload v1 as v3, v2 ``wallet_id:uint32 last_cleaned:uint64
public_key:bits256``, v3 ``public_key:bits256 wallet_id:uint32``; vesting as v3; preprocessed v2
``public_key:bits256 seqno:uint16``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.ingest.derive.contract.record import load_interfaces
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.decode.cell.slice import CellSlice

_PREFIX = "wallet_"
_KEY_BYTES = 32

Fields = dict[str, Any]
"""Columns of ``wallets`` beside those of the account."""


def read_wallet(code_hash: bytes, start: CellSlice | None) -> Fields | None:
    """Return what a wallet's data say; None where the code is not that of a known wallet.

    Args:
        code_hash: Hash of its code.
        start: Its data cell; None where it cannot be read, and all but the kind stays unknown.
    """
    kind = load_interfaces().by_code.get(code_hash, "")
    if not kind.startswith(_PREFIX) or kind not in _READERS:
        return None
    fields: Fields = {
        "kind": kind,
        **dict.fromkeys(("seqno", "wallet_id", "public_key", "is_signature_allowed")),
    }
    if start is None:
        return fields
    try:
        return fields | _READERS[kind](start)
    except BocError:
        return fields


def _read_plain(start: CellSlice) -> Fields:
    return {"seqno": start.load_uint(32), "public_key": start.load_bytes(_KEY_BYTES)}


def _read_numbered(start: CellSlice) -> Fields:
    seqno, wallet_id = start.load_uint(32), start.load_int(32)
    return {
        "seqno": seqno,
        "wallet_id": wallet_id,
        "public_key": start.load_bytes(_KEY_BYTES),
    }


def _read_v5(start: CellSlice) -> Fields:
    allowed = start.load_bit()
    return {"is_signature_allowed": allowed, **_read_numbered(start)}


def _read_v5_beta(start: CellSlice) -> Fields:
    # As TON Center reads it: the first bits of the 33 and of the 80 stand for what v5 has there.
    twin = start.copy()
    fields = {
        "is_signature_allowed": start.load_bit(),
        "seqno": start.load_uint(32),
        "wallet_id": start.load_int(32),
    }
    twin.skip(33 + 80)
    return {**fields, "public_key": twin.load_bytes(_KEY_BYTES)}


def _read_highload_v2(start: CellSlice) -> Fields:
    wallet_id = start.load_uint(32)
    start.skip(64)
    return {"wallet_id": wallet_id, "public_key": start.load_bytes(_KEY_BYTES)}


def _read_highload_v3(start: CellSlice) -> Fields:
    key = start.load_bytes(_KEY_BYTES)
    return {"public_key": key, "wallet_id": start.load_uint(32)}


def _read_preprocessed(start: CellSlice) -> Fields:
    key = start.load_bytes(_KEY_BYTES)
    return {"public_key": key, "seqno": start.load_uint(16)}


_READERS: dict[str, Callable[[CellSlice], Fields]] = {
    "wallet_v1r1": _read_plain,
    "wallet_v1r2": _read_plain,
    "wallet_v1r3": _read_plain,
    "wallet_v2r1": _read_plain,
    "wallet_v2r2": _read_plain,
    "wallet_v3r1": _read_numbered,
    "wallet_v3r2": _read_numbered,
    "wallet_v4r1": _read_numbered,
    "wallet_v4r2": _read_numbered,
    "wallet_v5_beta": _read_v5_beta,
    "wallet_v5r1": _read_v5,
    "wallet_highload_v1r1": _read_numbered,
    "wallet_highload_v1r2": _read_numbered,
    "wallet_highload_v2": _read_highload_v2,
    "wallet_highload_v2r1": _read_highload_v2,
    "wallet_highload_v2r2": _read_highload_v2,
    "wallet_highload_v3r1": _read_highload_v3,
    "wallet_preprocessed_v2": _read_preprocessed,
    "wallet_vesting": _read_numbered,
}
