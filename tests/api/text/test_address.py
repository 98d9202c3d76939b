"""Addresses: both forms, all flags, and invalid ones."""

import base64
import binascii

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytoniq_core import Address as OracleAddress

from tonlake.api.errors import AddressInvalid
from tonlake.api.text.encoding import Address, parse_address, read_address, render_friendly
from tonlake.lake.account import normalize_address

IDS = st.binary(min_size=32, max_size=32)
BYTE_WORKCHAINS = st.integers(-128, 127)
FLAGS = st.booleans()


@given(st.integers(-(1 << 31), (1 << 31) - 1), IDS, st.booleans())
def test_raw_form_returns(workchain: int, account: bytes, upper: bool) -> None:  # noqa: FBT001
    address = Address(workchain, account)
    text = str(address)
    assert text == f"{workchain}:{account.hex().upper()}"
    assert parse_address(text if upper else text.lower()) == address
    assert not read_address(text).friendly


@given(BYTE_WORKCHAINS, IDS, FLAGS, FLAGS, FLAGS)
def test_friendly_form_returns_with_its_flags(
    workchain: int,
    account: bytes,
    bounceable: bool,  # noqa: FBT001
    test_only: bool,  # noqa: FBT001
    url_safe: bool,  # noqa: FBT001
) -> None:
    address = Address(workchain, account)
    text = render_friendly(address, bounceable=bounceable, test_only=test_only, url_safe=url_safe)
    read = read_address(text)
    assert (read.address, read.friendly) == (address, True)
    assert (read.bounceable, read.test_only) == (bounceable, test_only)
    oracle = OracleAddress((workchain, account)).to_str(
        is_user_friendly=True,
        is_url_safe=url_safe,
        is_bounceable=bounceable,
        is_test_only=test_only,
    )
    assert text == oracle


@given(BYTE_WORKCHAINS, IDS, st.lists(FLAGS, min_size=48, max_size=48))
def test_friendly_form_may_mix_alphabets(workchain: int, account: bytes, plain: list[bool]) -> None:
    address = Address(workchain, account)
    text = render_friendly(address, bounceable=True, test_only=False)
    other = text.replace("-", "+").replace("_", "/")
    mixed = "".join(one if use else two for use, one, two in zip(plain, text, other, strict=True))
    assert parse_address(mixed) == address
    assert normalize_address(mixed) == str(address)


@given(BYTE_WORKCHAINS, IDS, st.integers(0, 287))
def test_one_wrong_bit_is_noticed(workchain: int, account: bytes, bit: int) -> None:
    text = render_friendly(Address(workchain, account), bounceable=True, test_only=False)
    data = bytearray(base64.urlsafe_b64decode(text))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(AddressInvalid, match="checksum"):
        parse_address(base64.urlsafe_b64encode(data).decode())


@given(st.text(max_size=70))
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(AddressInvalid):
        parse_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0:",
        "0:" + "f" * 63,
        "0:" + "g" * 64,
        "2147483648:" + "f" * 64,
        "+0:" + "f" * 64,
        "0:" + "f" * 64 + "\n",
        "0:" + "f" * 65,
        "E" * 47,
        "E" * 48,
        "E" * 47 + "=",
        "null",
    ],
)
def test_almost_an_address_is_refused(text: str) -> None:
    with pytest.raises(AddressInvalid):
        parse_address(text)


def test_an_unknown_tag_is_refused() -> None:
    body = bytes((0x31, 0)) + bytes(32)
    whole = body + binascii.crc_hqx(body, 0).to_bytes(2, "big")
    with pytest.raises(AddressInvalid, match="tag 0x31"):
        parse_address(base64.urlsafe_b64encode(whole).decode())


def test_a_wide_workchain_has_no_friendly_form() -> None:
    with pytest.raises(AddressInvalid, match="no friendly form"):
        render_friendly(Address(128, bytes(32)), bounceable=True, test_only=False)
