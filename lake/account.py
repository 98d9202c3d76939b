"""Account ids and addresses: workchain first, then account id."""

from __future__ import annotations

import base64
import binascii
import re

MASTERCHAIN = -1
"""The workchain of the masterchain."""

AccountId = tuple[int, bytes]
"""Workchain and account id, 32 bytes; ids of one workchain sort like these bytes."""

_RAW = re.compile(r"(-?[0-9]{1,10}):([0-9a-fA-F]{64})")
_FRIENDLY = re.compile(r"[-_+/0-9A-Za-z]{48}")
_URL_SAFE = str.maketrans("-_", "+/")


def normalize_address(text: str) -> str:
    """Return an address, raw or friendly, in the lake's raw form.

    Raises:
        ValueError: it is not an address, or its checksum is wrong.
    """
    raw = _RAW.fullmatch(text)
    if raw is not None:
        return f"{int(raw[1])}:{raw[2].upper()}"
    shaped = _FRIENDLY.fullmatch(text) is not None
    data = base64.b64decode(text.translate(_URL_SAFE)) if shaped else b""
    if not data or binascii.crc_hqx(data, 0):
        raise ValueError(f"{text[:80]!r} is not an address, or its checksum is wrong")
    return f"{int.from_bytes(data[1:2], 'big', signed=True)}:{data[2:34].hex().upper()}"
