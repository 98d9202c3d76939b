"""Converts values to and from text: addresses, hashes, numbers, shards, opcodes, ranges of blocks.

Addresses are raw or user-friendly (TEP-2).
"""

import base64
import binascii
from binascii import b2a_base64
from collections.abc import Sequence

import msgspec

from tonlake.api.errors import AddressInvalid
from tonlake.api.text.native import NATIVE
from tonlake.lake.account import read_friendly_address, read_raw_address

_BOUNCEABLE, _NON_BOUNCEABLE, _TEST_ONLY = 0x11, 0x51, 0x80  # TEP-2, tag byte
TAGS = {
    (bounceable, test_only): tag | (_TEST_ONLY if test_only else 0)
    for bounceable, tag in ((True, _BOUNCEABLE), (False, _NON_BOUNCEABLE))
    for test_only in (True, False)
}
"""The tag byte of the user-friendly form by its flags: bounceable, test-only."""


class Address(msgspec.Struct, frozen=True, order=True):
    """A standard address: workchain and 32-byte account id."""

    workchain: int
    account: bytes

    def __str__(self) -> str:
        """Return the raw form, hex digits in upper case."""
        return render_raw(self.workchain, self.account)


class WrittenAddress(msgspec.Struct, frozen=True):
    """An address with the flags of its user-friendly form; raw addresses have none."""

    address: Address
    friendly: bool
    bounceable: bool = False
    test_only: bool = False


def read_address(text: str) -> WrittenAddress:
    """Parse a raw address in any letter case, or a friendly one, which may mix both alphabets.

    Raises:
        AddressInvalid: ``text`` is neither, or has a wrong tag or checksum.
    """
    try:
        raw = read_raw_address(text)
        if raw is not None:
            return WrittenAddress(Address(*raw), friendly=False)
        data = read_friendly_address(text)
    except ValueError as error:
        raise AddressInvalid(text, str(error)) from error
    tag = data[0] & ~_TEST_ONLY
    if tag not in (_BOUNCEABLE, _NON_BOUNCEABLE):
        raise AddressInvalid(text, f"its tag 0x{data[0]:02x} is unknown")
    return WrittenAddress(
        Address(int.from_bytes(data[1:2], "big", signed=True), data[2:]),
        friendly=True,
        bounceable=tag == _BOUNCEABLE,
        test_only=bool(data[0] & _TEST_ONLY),
    )


def parse_address(text: str) -> Address:
    """Parse an address in any notation; see ``read_address``."""
    return read_address(text).address


def render_raw(workchain: int, account: bytes) -> str:
    """Return ``workchain:HEX``, the notation of API v3."""
    return f"{workchain}:{account.hex().upper()}"


def render_friendly(
    address: Address, *, bounceable: bool, test_only: bool, url_safe: bool = True
) -> str:
    """Return the 48-character user-friendly form (TEP-2).

    Raises:
        AddressInvalid: the workchain does not fit in 8 bits.
    """
    if not -128 <= address.workchain <= 127:  # noqa: PLR2004
        raise AddressInvalid(str(address), "its workchain has no friendly form")
    tag = TAGS[bounceable, test_only]
    if NATIVE is not None and url_safe:
        return str(NATIVE.write_friendly(tag, address.workchain, address.account))
    body = bytes((tag, address.workchain & 0xFF)) + address.account
    data = body + binascii.crc_hqx(body, 0).to_bytes(2, "big")
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    return encode(data).decode("ascii")


def name_workchain(name: str) -> str:
    """Return the workchain column that belongs to a column of account ids.

    ``account`` belongs to ``workchain``, ``tx_account`` to ``tx_workchain``, and any other
    ``owner`` or ``owner_id`` to ``owner_workchain``.
    """
    if name.endswith("account"):
        return name.removesuffix("account") + "workchain"
    return name.removesuffix("_id") + "_workchain"


_UINT32, _UINT64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def encode_bytes(data: bytes | memoryview) -> str:
    """Return standard base64 with padding, as used for hashes and bags of cells."""
    return b2a_base64(data, newline=False).decode("ascii")


def encode_optional(data: bytes | None) -> str | None:
    """Return base64; None for None."""
    return None if data is None else encode_bytes(data)


def encode_number(number: object | None) -> str | None:
    """Return a number as text, as JSON numbers lose precision; None for None."""
    return None if number is None else str(number)


def encode_account(workchain: int | None, account: bytes | None) -> str | None:
    """Return the raw address; None without a workchain or an account."""
    return None if account is None or workchain is None else f"{workchain}:{account.hex().upper()}"


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


MAX_RANGES = 5
"""Maximum ranges in a message; ``tonlake status`` lists all."""


def name_ranges(ranges: Sequence[tuple[int, int]]) -> str:
    """Return ranges as ``1..3, 7..9``; beyond ``MAX_RANGES`` only their number."""
    text = ", ".join(f"{first}..{last}" for first, last in ranges[:MAX_RANGES]) or "nothing"
    more = len(ranges) - MAX_RANGES
    return f"{text} and {more} more ranges" if more > 0 else text
