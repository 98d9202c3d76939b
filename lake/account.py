"""Addresses, hashes, shards and block ids: their notations, and the form that the lake has."""

import base64
import binascii
import re
from collections.abc import Iterable

MASTERCHAIN = -1

AccountId = tuple[int, bytes]
"""Workchain and account id, 32 bytes; ids of one workchain sort like these bytes."""

BlockPlace = tuple[int, int, int]
"""Workchain, shard and seqno of a block."""


def normalize_address(text: str) -> str:
    """Return an address, raw or friendly, in the lake's raw form, or raise ValueError."""
    try:
        raw = read_raw_address(text)
        data = b"" if raw is not None else read_friendly_address(text)
    except ValueError as error:
        raise ValueError(f"{text[:80]!r} is not an address, or its checksum is wrong") from error
    workchain, account = raw or (int.from_bytes(data[1:2], "big", signed=True), data[2:])
    return f"{workchain}:{account.hex().upper()}"


_RAW = re.compile(r"(-?[0-9]{1,10}):([0-9a-fA-F]{64})")
_FRIENDLY = re.compile(r"[-_+/0-9A-Za-z]{48}")
_HEX_HASH = re.compile(r"(?:0[xX])?([0-9a-fA-F]{64})")
_BASE64_HASH = re.compile(r"([-_+/0-9A-Za-z]{43})=?")
_SHARD_HEX = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,16})")
_SHARD_DECIMAL = re.compile(r"[+-]?[0-9]{1,20}")
_BLOCK = re.compile(
    r"\(?(-?[0-9]{1,10})[,:] ?((?:0[xX])?[0-9a-fA-F]{16}|-?[0-9]{17,20})[,:] ?([0-9]{1,10})\)?"
    "(?::[0-9a-fA-F]{64}){0,2}"
)
"""The shard whole: 16 hex digits, or a decimal, which has more; a node adds root and file hash."""
_PLAIN = str.maketrans("-_", "+/")
_INT32, _INT64 = 1 << 31, 1 << 63


def decode_base64(text: str) -> bytes:
    """Decode base64 of both alphabets, even mixed, padded or not, or raise ValueError."""
    plain = text.translate(_PLAIN).rstrip("=")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)


def read_raw_address(text: str) -> tuple[int, bytes] | None:
    """Return workchain and id of ``workchain:HEX``; None: not so; ValueError: more than 32 bits."""
    match = _RAW.fullmatch(text)
    if match is None:
        return None
    workchain = int(match[1])
    if not -_INT32 <= workchain < _INT32:
        raise ValueError("its workchain does not fit 32 bits")
    return workchain, bytes.fromhex(match[2])


def read_friendly_address(text: str) -> bytes:
    """Return the 34 bytes tag, workchain and id of a friendly address (TEP-2), or ValueError."""
    if _FRIENDLY.fullmatch(text) is None:
        raise ValueError("neither raw (workchain:hex) nor friendly (48 characters)")
    data = decode_base64(text)
    if binascii.crc_hqx(data, 0):
        raise ValueError("its checksum is wrong")
    if data[0] & 0x7F not in {0x11, 0x51}:  # bounceable or not; the upper bit: test network
        raise ValueError(f"its tag 0x{data[0]:02x} is unknown")
    return data[:34]


def read_hash(text: str) -> bytes:
    """Return 32 bytes from 64 hex digits, after 0x or not, 43 or 44 of base64, or ValueError."""
    if match := _HEX_HASH.fullmatch(text):
        return bytes.fromhex(match[1])
    if match := _BASE64_HASH.fullmatch(text):
        return decode_base64(match[1])
    raise ValueError(
        f"{text[:80]!r} is not a hash: expected 64 hex digits, or 43 characters of base64"
    )


def read_shard(text: str) -> int:
    """Return the signed 64-bit id of a shard from hex digits or a decimal, or raise ValueError."""
    if match := _SHARD_HEX.fullmatch(text):
        number = int(match[1], 16)
    elif _SHARD_DECIMAL.fullmatch(text) and -_INT64 <= int(text) < 2 * _INT64:
        number = int(text)
    else:
        raise ValueError(f"{text[:80]!r} is not a shard: expected 16 hex digits or a decimal")
    return number - 2 * _INT64 if number >= _INT64 else number


def shards_overlap(left: int, right: int) -> bool:
    """Return whether either shard contains the other: the shorter prefix begins the longer one."""
    mark = max(left & -left, right & -right)
    return (left ^ right) & (2 * _INT64 - 2 * mark) == 0


def is_passed(block: BlockPlace, committed: Iterable[BlockPlace]) -> bool:
    """Return whether a block, or another one in its place, is among committed ones."""
    workchain, shard, seqno = block
    return any(
        one[0] == workchain and one[2] >= seqno and shards_overlap(one[1], shard)
        for one in committed
    )


def read_block_id(text: str) -> tuple[int, int, int] | None:
    """Return workchain, shard and seqno of ``(wc,shard,seqno)`` or ``wc:shard:seqno``, or None."""
    match = _BLOCK.fullmatch(text)
    if match is None:
        return None
    try:
        return int(match[1]), read_shard(match[2]), int(match[3])
    except ValueError:
        return None
