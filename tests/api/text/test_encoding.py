"""Addresses: both forms, all flags, and invalid ones."""

import base64
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pytoniq_core import Address as OracleAddress

import tonlake
from tonlake.api.errors import AddressInvalid
from tonlake.api.text import encoding
from tonlake.api.text.encoding import (
    MAX_RANGES,
    Address,
    name_ranges,
    parse_address,
    read_address,
    render_friendly,
)
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


@given(BYTE_WORKCHAINS, IDS, st.lists(FLAGS, min_size=48, max_size=48))
def test_friendly_form_may_mix_alphabets(workchain: int, account: bytes, plain: list[bool]) -> None:
    address = Address(workchain, account)
    text = render_friendly(address, bounceable=True, test_only=False)
    other = text.replace("-", "+").replace("_", "/")
    mixed = "".join(one if use else two for use, one, two in zip(plain, text, other, strict=True))
    assert parse_address(mixed) == address
    assert normalize_address(mixed) == str(address)


def test_every_door_takes_a_reported_address_and_siblings(
    client: Any, demo_lake: Path, shared: Path
) -> None:
    folder = shared / "data" / "reports" / "01-mixed-address"
    cases = [[(folder / f"{name}.txt").read_text().strip() for name in ("address", "expected")]]
    for workchain, part in ((-1, b"\xfb\xef\xbe\xff"), (0, b"\xff" * 4), (0, b"\xfe\xfb" * 2)):
        sdk = OracleAddress((workchain, part * 8))
        start, end = (sdk.to_str(is_url_safe=is_safe) for is_safe in (True, False))
        cases.append([start[:24] + end[24:], f"{workchain}:{part.hex().upper() * 8}"])
    for text, raw in cases:
        found = client.get("/api/v2/detectAddress", params={"address": text}).json()["result"]
        assert found["raw_form"].upper() == raw
        [book] = client.get("/api/v3/addressBook", params={"address": text}).json().values()
        assert OracleAddress(book["user_friendly"]).hash_part.hex().upper() == raw[-64:]
        shown = client.get("/search", params={"q": text}, follow_redirects=False)
        assert unquote(shown.headers["location"]) == f"/account/{raw}"
        assert tonlake.open(demo_lake).account(text).raw == raw


@given(BYTE_WORKCHAINS, IDS, st.integers(0, 287))
def test_one_wrong_bit_is_noticed(workchain: int, account: bytes, bit: int) -> None:
    text = render_friendly(Address(workchain, account), bounceable=True, test_only=False)
    data = bytearray(base64.urlsafe_b64decode(text))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(AddressInvalid, match="checksum"):
        parse_address(base64.urlsafe_b64encode(data).decode())


@given(st.text(max_size=70))
@example("")
@example("0:")
@example("0:" + "f" * 63)
@example("0:" + "g" * 64)
@example("2147483648:" + "f" * 64)
@example("+0:" + "f" * 64)
@example("0:" + "f" * 64 + "\n")
@example("0:" + "f" * 65)
@example("E" * 47)
@example("E" * 48)
@example("E" * 47 + "=")
@example("MQDO7LLFdHmVHNZNq8uk6fCw4JPlDLfOs0ZIPki5h0p992_D")
@example("null")
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(AddressInvalid):
        parse_address(text)


@pytest.mark.parametrize(
    ("shard", "text"),
    [
        (-(1 << 63), "8000000000000000"),
        (0x2000000000000000, "2000000000000000"),
        (0x0800000000000000, "800000000000000"),
        (-0x6000000000000000, "A000000000000000"),
    ],
)
def test_shards_are_hex_without_padding(shard: int, text: str) -> None:
    assert encoding.encode_shard(shard) == text


@pytest.mark.parametrize(
    ("opcode", "written"), [(0x0F8A7EA5, "0x0f8a7ea5"), (-1, "0xffffffff"), (0, "0x00000000")]
)
def test_opcodes(opcode: int, written: str) -> None:
    assert encoding.encode_opcode(opcode) == written


def test_of_many_ranges_the_first_are_named() -> None:
    ranges = [(number, number) for number in range(1, 3 * MAX_RANGES, 2)]
    assert name_ranges([]) == "nothing"
    assert name_ranges([(1, 3), (7, 9)]) == "1..3, 7..9"
    assert name_ranges(ranges).count("..") == MAX_RANGES
    assert name_ranges(ranges).endswith(f" and {len(ranges) - MAX_RANGES} more ranges")
