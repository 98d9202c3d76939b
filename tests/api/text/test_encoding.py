"""Text forms of values."""

import pytest

from tonlake.api.text import encoding


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
    ("opcode", "form", "written"),
    [
        (0x0F8A7EA5, "hex", "0x0f8a7ea5"),
        (-1, "hex", "0xffffffff"),
        (0, "hex", "0x00000000"),
        (-1, "integer", -1),
        (None, "hex", None),
        (None, "integer", None),
    ],
)
def test_opcodes(opcode: int | None, form: str, written: str | int | None) -> None:
    assert encoding.encode_opcode(opcode, form) == written


def test_what_is_absent_is_none() -> None:
    assert encoding.encode_optional(None) is None
    assert encoding.encode_number(None) is None
    assert encoding.encode_account(0, None) is None
    assert encoding.decode_currencies(None) == {}


def test_numbers_and_bytes_are_text() -> None:
    assert encoding.encode_number(1 << 62) == "4611686018427387904"
    assert encoding.encode_bytes(bytes(32)) == "A" * 43 + "="
    assert encoding.decode_currencies('{"100": "5"}') == {"100": "5"}
