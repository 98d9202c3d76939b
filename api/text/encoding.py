"""Encodes values as text: hashes, addresses, shards, opcodes, bags of cells."""

from __future__ import annotations

import base64

import msgspec

from tonlake.api.text.address import render_raw

_UINT32, _UINT64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def encode_bytes(data: bytes) -> str:
    """Return standard base64 with padding, as used for hashes and bags of cells."""
    return base64.b64encode(data).decode("ascii")


def encode_optional(data: bytes | None) -> str | None:
    """Return base64; None for None."""
    return None if data is None else encode_bytes(data)


def encode_number(number: object | None) -> str | None:
    """Return a number as text, as JSON numbers lose precision; None for None."""
    return None if number is None else str(number)


def encode_account(workchain: int | None, account: bytes | None) -> str | None:
    """Return the raw address; None without a workchain or an account."""
    return None if workchain is None or account is None else render_raw(workchain, account)


def encode_shard(shard: int) -> str:
    """Return a signed shard id as upper-case hex of its 64 bits, without padding."""
    return f"{shard & _UINT64:X}"


def encode_opcode(opcode: int | None, form: str) -> str | int | None:
    """Return a signed opcode as ``0x%08x``, or unchanged if ``form`` is ``integer``."""
    if opcode is None or form == "integer":
        return opcode
    return f"0x{opcode & _UINT32:08x}"


def decode_currencies(text: str | None) -> dict[str, str]:
    """Parse extra currencies, as text amounts by id; {} for None."""
    return {} if text is None else msgspec.json.decode(text, type=dict[str, str])
