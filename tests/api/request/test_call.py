"""Query parameters: every converter, arrays, repeated and unknown keys, and errors."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.api.errors import RequestInvalid
from tonlake.api.request import call
from tonlake.api.text.encoding import Address, render_friendly

HASHES = st.binary(min_size=32, max_size=32)
CONVERTERS: tuple[Callable[[str], Any], ...] = (
    call.parse_int32,
    call.parse_lt,
    call.parse_utime,
    call.parse_bool,
    call.parse_hash,
    call.parse_any_address,
    call.parse_address_or_null,
    call.parse_shard,
    call.parse_opcode,
)


class Sample(call.Query, frozen=True, kw_only=True):
    """One parameter of each kind."""

    number: call.Int32 = None
    lt: call.Lt = None
    flag: call.Flag = None
    hash: call.Hash = None
    account: call.Addresses = ()
    hashes: call.Hashes = ()
    text: call.Text = None


def read(*pairs: tuple[str, str]) -> Sample:
    return call.read_query(Sample, call.Arguments(pairs))


@given(st.text(max_size=80))
@pytest.mark.parametrize("parse", CONVERTERS)
def test_garbage_raises_nothing_but_conversion_errors(
    parse: Callable[[str], Any], text: str
) -> None:
    try:
        parse(text)
    except call.ConversionError:
        return


READ: dict[Callable[[str], Any], dict[str, object]] = {
    call.parse_utime: {
        **dict.fromkeys(("1700000000", "1700000000.9", "1.7e9"), 1700000000),
        "0": 0,
        ".5": 0,
        "99999999999": 99999999999,
        "-1": call.INT64_MAX,
        "1e30": min(int(1e30 % (1 << 64)), call.INT64_MAX),
    },
    call.parse_bool: {
        **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True", "on"), True),
        **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False", ""), False),
    },
    call.parse_opcode: {
        "0x0f8a7ea5": 0x0F8A7EA5,
        "0f8a7ea5": 0x0F8A7EA5,
        "10": 0x10,
        **dict.fromkeys(("0xffffffff", "-1", "4294967295"), -1),
        **dict.fromkeys(("-2147483648", "2147483648"), -(1 << 31)),
    },
    call.parse_address_or_null: {"null": call.NoAddress()},
    call.parse_sort: {"asc": "asc", "A": "asc", "DESC": "desc", "d": "desc", "": "", "up": ""},
}
REFUSED: dict[Callable[[str], Any], tuple[str, ...]] = {
    call.parse_lt: ("-1", "+1", "1.0", str(1 << 64), "0x1", " 1", "1e3", "٣"),
    call.parse_utime: ("", "now", "1_000", "inf", "nan", "1e999", "0x10", "1,5"),
    call.parse_bool: ("yes", "tRUE", "2", "off", "On"),
    call.parse_hash: ("", "ab", "g" * 64, "A" * 42, "A" * 44, "A" * 42 + "==", "a" * 66),
    call.parse_shard: ("", "-", "8" * 20, "xyz", str(1 << 64)),
    call.parse_opcode: ("", "0x", "0x100000000", "4294967296", "zz", "-2147483649"),
    call.parse_any_address: ("null",),
}


@pytest.mark.parametrize("parse", READ)
def test_what_is_read(parse: Callable[[str], Any]) -> None:
    values = {text: parse(text) for text in READ[parse]}
    assert values == READ[parse]
    assert list(map(type, values.values())) == list(map(type, READ[parse].values()))


@pytest.mark.parametrize(
    ("parse", "text"), [(parse, text) for parse, texts in REFUSED.items() for text in texts]
)
def test_what_is_refused(parse: Callable[[str], Any], text: str) -> None:
    with pytest.raises(call.ConversionError):
        parse(text)


@given(st.integers(-(1 << 31), (1 << 31) - 1))
def test_int32(number: int) -> None:
    assert call.parse_int32(str(number)) == number
    assert call.parse_int32("") == 0


@given(st.integers(0, (1 << 64) - 1))
def test_lt_is_unsigned_and_ends_at_what_a_lake_can_hold(number: int) -> None:
    assert call.parse_lt(str(number)) == min(number, call.INT64_MAX)


@given(HASHES)
def test_hash_in_every_form(data: bytes) -> None:
    plain = base64.b64encode(data).decode()
    forms = (
        data.hex(),
        data.hex().upper(),
        "0x" + data.hex(),
        plain,
        base64.urlsafe_b64encode(data).decode(),
        plain.replace("+", " "),
        plain.removesuffix("="),
    )
    assert {call.parse_hash(form) for form in forms} == {data}


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_shard_in_every_form(shard: int) -> None:
    unsigned = shard & (1 << 64) - 1
    assert call.parse_shard(f"{unsigned:x}") == shard
    assert call.parse_shard(f"0x{unsigned:016X}") == shard
    if shard < 0 or len(str(shard)) > 16:
        assert call.parse_shard(str(shard)) == shard


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], Sample()),
        (
            [("NUMBER", "1"), ("Account[]", f"0:{'a' * 64}")],
            Sample(number=1, account=(Address(0, bytes.fromhex("a" * 64)),)),
        ),
        ([("number", "x"), ("number", "2")], Sample(number=2)),
        ([("account", ""), ("hashes", f",{'0' * 64},")], Sample(hashes=(bytes(32),))),
    ],
)
def test_parameters_are_read(pairs: list[tuple[str, str]], expected: Sample) -> None:
    assert read(*pairs) == expected


@given(st.lists(st.tuples(st.sampled_from([-1, 0]), HASHES), max_size=5), st.booleans())
def test_lists_by_repetition_and_by_commas(
    pairs: list[tuple[int, bytes]],
    joined: bool,  # noqa: FBT001
) -> None:
    addresses = tuple(Address(*pair) for pair in pairs)
    texts = [render_friendly(item, bounceable=True, test_only=False) for item in addresses]
    given_as = [",".join(texts)] if joined and texts else texts
    assert read(*(("account", text) for text in given_as)).account == addresses


def test_errors_name_the_parameter_and_count_the_others() -> None:
    with pytest.raises(RequestInvalid) as one:
        read(("number", "x"))
    assert str(one.value) == 'schema: error converting value for "number"'
    with pytest.raises(RequestInvalid) as two:
        read(("lt", "x"), ("account", f"0:{'0' * 64}"), ("account", "y"))
    assert str(two.value) == 'schema: error converting value for "lt" (and 1 other error)'
    with pytest.raises(RequestInvalid) as three:
        read(("account", f"0:{'0' * 64},z"), ("flag", "y"), ("hash", ""))
    assert str(three.value).endswith(" (and 2 other errors)")
    with pytest.raises(RequestInvalid, match='index 1 of "account"'):
        read(("account", f"0:{'0' * 64},z"))
