"""Account ids and addresses: workchain first, then account id."""

from __future__ import annotations

from tonlake.lake.notation import read_friendly_address, read_raw_address

MASTERCHAIN = -1
"""The workchain of the masterchain."""

AccountId = tuple[int, bytes]
"""Workchain and account id, 32 bytes; ids of one workchain sort like these bytes."""


def normalize_address(text: str) -> str:
    """Return an address, raw or friendly, in the lake's raw form.

    Raises:
        ValueError: it is not an address, or its checksum is wrong.
    """
    try:
        raw = read_raw_address(text)
        data = b"" if raw is not None else read_friendly_address(text)
    except ValueError as error:
        raise ValueError(f"{text[:80]!r} is not an address, or its checksum is wrong") from error
    workchain, account = raw or (int.from_bytes(data[1:2], "big", signed=True), data[2:])
    return f"{workchain}:{account.hex().upper()}"
