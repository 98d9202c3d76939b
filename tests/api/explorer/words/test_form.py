"""How pages write numbers, times, texts and names."""

from fractions import Fraction
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.api.explorer.words import form
from tonlake.api.explorer.words.form import name_call, sum_values, write_opcode
from tonlake.api.explorer.words.names import Names, list_certain, load_labels
from tonlake.api.request.call import Call
from tonlake.api.v3.layout.transaction import Message, MessageContent
from tonlake.api.v3.resource.answer import AddressBookRow, AddressMetadata, TokenInfo
from tonlake.lake.settings import LakeSettings

GOLD = f"0:{'C' * 64}"


@given(st.integers(-(10**40), 10**40), st.integers(0, 40))
def test_units_lose_nothing(amount: int, digits: int) -> None:
    text = form.write_units(amount, digits)
    assert Fraction(text.replace(",", "")) * 10**digits == amount
    assert "." not in text or not text.endswith("0")


@pytest.mark.parametrize(
    ("nano", "text"),
    [(0, "0 TON"), (1, "< 0.001 TON"), (10**6, "0.001 TON"), ("1500000000", "1.5 TON")],
)
def test_brief_amounts(nano: str | int, text: str) -> None:
    assert form.write_brief(nano) == text


def test_sizes_and_spans() -> None:
    assert [form.write_bytes(size) for size in (0, 999, 1000, 25 * 10**11)] == [
        *("0 B", "999 B", "1.0 kB", "2.5 TB")
    ]
    assert [form.write_duration(span) for span in (-5, 0.4, 119, 120, 7200, 10**6)] == [
        *("0 s", "0 s", "119 s", "2 min", "2 h", "12 d")
    ]


@given(st.integers(0, (1 << 32) - 1))
def test_moments_read_back(utime: int) -> None:
    text = form.write_moment(utime).replace(" ", "T") + "Z"
    assert text == form.write_iso(utime)
    assert form.read_moment(utime).timestamp() == utime


@given(st.text(max_size=200), st.integers(1, 20))
def test_shortened_texts_keep_their_ends(text: str, keep: int) -> None:
    short = form.shorten(text, keep)
    assert len(short) <= max(2 * keep + 1, 1)
    assert (text[:keep], text[-keep:]) == (short[:keep], short[-keep:])
    assert len(form.clip(text, keep)) <= keep


@given(st.binary(max_size=64))
def test_hashes_become_hex(data: bytes) -> None:
    import base64  # noqa: PLC0415 - only here

    assert form.write_hex(base64.b64encode(data).decode()) == data.hex()


def test_text_that_is_no_hash_stays() -> None:
    assert form.write_hex("not base64!") == "not base64!"


def _message(**fields: Any) -> Message:
    empty: dict[str, Any] = dict.fromkeys(Message.__struct_fields__[:18])
    return Message(**(empty | {"hash": ""} | fields))


def test_calls_are_named() -> None:
    assert name_call(None) == ""
    assert name_call(_message(opcode=-1)) == "0xffffffff"
    assert name_call(_message(opcode="0x10000", decoded_opcode="excess")) == "excess"
    small = {"opcode": 2, "decoded_opcode": "withdraw"}
    assert name_call(_message(**small)) == "0x00000002"
    fits = MessageContent("", None, {"@type": "withdraw"})
    assert name_call(_message(**small, message_content=fits)) == "withdraw"
    assert name_call(_message(opcode=0, decoded_opcode="text_comment")) == "text_comment"
    assert name_call(_message(bounced=True)) == "bounced"
    assert name_call(_message(bounced=True, decoded_opcode="bounce")) == "bounced"
    assert name_call(_message(bounced=True, decoded_opcode="excess")) == "bounced excess"


def test_a_message_from_outside_has_no_opcode() -> None:
    outside = {"destination": "0:1", "opcode": "0xe89169f2"}
    assert name_call(_message(**outside)) == "external message"
    content = MessageContent("", None, {"@type": "wallet_signed_v4"})
    assert name_call(_message(**outside, message_content=content)) == "wallet_signed_v4"
    assert name_call(_message(**outside, decoded_opcode="named")) == "named"
    assert name_call(_message(**outside, source="0:2")) == "0xe89169f2"
    assert write_opcode(None) == ""
    assert sum_values([_message(value="2"), _message()]) == 2


@pytest.mark.parametrize(
    ("decimals", "text"),
    [("3", "1 AU"), ("0", "1,000 AU"), ("x", "0.000001 AU"), ("999", "0.000001 AU"), (None, "")],
)
def test_jettons_have_their_own_decimals(decimals: str | None, text: str) -> None:
    names = Names(cast("Call", None))
    extra: dict[str, object] = {} if decimals is None else {"decimals": decimals}
    info = TokenInfo(type="jetton_masters", symbol="AU", extra=extra)
    names.learn({}, {GOLD: AddressMetadata(is_indexed=True, token_info=[info])})
    assert names.amount(1000, GOLD) == (text or "0.000001 AU")
    assert names.amount(None, GOLD) == "an unknown amount of AU"
    assert names.amount(10**9) == "1 TON"


ANN, BOB, GOLD = (f"0:{digit * 64}" for digit in "ABC")
ELECTOR = f"-1:{'3' * 64}"


def test_tokens_are_called_by_name_domain_or_address() -> None:
    names = Names(None)  # type: ignore[arg-type] # nothing has to be looked up
    tokens = {
        ANN: TokenInfo("jetton_masters", name="Annas", symbol="AN"),
        BOB: TokenInfo("nft_items", extra={"domain": "bob.ton"}),
    }
    metadata = {
        raw: AddressMetadata(is_indexed=True, token_info=[info]) for raw, info in tokens.items()
    }
    book = {raw: AddressBookRow(f"EQ-of-{raw[-1]}", None, None) for raw in (ANN, BOB, GOLD)}
    names.learn(book, metadata)
    assert [names.label(raw) for raw in (ANN, BOB, GOLD)] == ["Annas", "bob.ton", "EQ-of-C"]
    assert [names.symbol(raw) for raw in (None, ANN, GOLD)] == ["TON", "AN", "EQ-of-C"]
    assert [names.unit(raw) for raw in (None, ANN, GOLD)] == ["TON", "AN", "units of EQ-of-C"]


def test_code_that_resembles_several_wallets_is_none_of_them() -> None:
    by_seqno = ["wallet_v1r2", "wallet_v2r1", "wallet_v3r1", "wallet_v5_beta"]
    assert list_certain(by_seqno) == []
    assert list_certain(["nft_item", *by_seqno, "wallet_vesting"]) == ["nft_item", "wallet_vesting"]
    for known in (["wallet_v3r1"], ["dns", "nft_item"], []):
        assert list_certain(known) == known


def test_a_label_comes_before_a_domain() -> None:
    labels = load_labels(LakeSettings())
    names = Names(None, labels)  # type: ignore[arg-type] # nothing has to be looked up
    names.learn({ELECTOR: AddressBookRow("Ef8", "a-domain.ton", None)})
    assert names.label(ELECTOR) == "Elector"
