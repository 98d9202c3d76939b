"""How a body becomes msg_data and message: comments, encrypted comments, anything else."""

import base64
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from pytoniq_core import Address, Builder, Cell
from pytoniq_core.boc import CellTypes

from tests.api.v2.conftest import Asker
from tonlake.api.v2.transaction import ENCRYPTED_OPCODE, render_message, render_message_std

FIRST_BYTES, NEXT_BYTES = 123, 127


def _snake(opcode: int, text: bytes) -> Cell:
    parts = [text[:FIRST_BYTES]]
    parts += [text[at : at + NEXT_BYTES] for at in range(FIRST_BYTES, len(text), NEXT_BYTES)]
    cell: Cell | None = None
    for at in range(len(parts) - 1, -1, -1):
        builder = Builder()
        if at == 0:
            builder.store_uint(opcode, 32)
        builder.store_bytes(parts[at])
        if cell is not None:
            builder.store_ref(cell)
        cell = builder.end_cell()
    assert cell is not None
    return cell


def _row(body: Cell, **columns: object) -> dict[str, Any]:
    return {
        "msg_hash": bytes(32),
        "source_workchain": 0,
        "source": bytes(32),
        "destination_workchain": -1,
        "destination": b"\x11" * 32,
        "value": 5,
        "value_extra_currencies": None,
        "fwd_fee": 3,
        "created_lt": 9,
        "body_hash": body.hash,
        "body": body.to_boc(),
        "init_state": None,
        **columns,
    }


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@given(st.text(max_size=600))
@example("")
@example("x" * FIRST_BYTES)
@example("x" * (FIRST_BYTES + 1))
@example("я" * 5000)
def test_a_comment_of_any_length_is_text(text: str) -> None:
    body = _snake(0, text.encode())
    found = render_message(_row(body))
    assert found["msg_data"] == {"@type": "msg.dataText", "text": _b64(text.encode())}
    assert found["message"] == text
    std = render_message_std(_row(body))
    assert std["msg_data"] == found["msg_data"]
    assert "message" not in std


@given(st.binary(max_size=300))
def test_a_comment_that_is_not_utf8_says_so(text: bytes) -> None:
    found = render_message(_row(_snake(0, text)))
    assert found["msg_data"]["text"] == _b64(text)
    try:
        assert found["message"] == text.decode()
        assert "message_decode_error" not in found
    except UnicodeDecodeError:
        assert found["message"] == ""
        assert found["message_decode_error"]


@given(st.binary(max_size=300))
def test_an_encrypted_comment_has_no_words(text: bytes) -> None:
    found = render_message(_row(_snake(ENCRYPTED_OPCODE, text)))
    assert found["msg_data"] == {"@type": "msg.dataEncryptedText", "text": _b64(text)}
    assert "message" not in found


@given(st.lists(st.booleans(), max_size=400))
def test_other_bodies_are_raw(bits: list[bool]) -> None:
    builder = Builder()
    for bit in bits:
        builder.store_bit(int(bit))
    body = builder.end_cell()
    word = int("".join(str(int(bit)) for bit in bits[:32]) or "1", 2)
    if len(bits) >= 32 and word in (0, ENCRYPTED_OPCODE) and len(bits) % 8 == 0:
        return
    found = render_message(_row(body))
    assert found["msg_data"]["@type"] == "msg.dataRaw"
    assert Cell.one_from_boc(base64.b64decode(found["msg_data"]["body"])).hash == body.hash
    assert found["msg_data"]["init_state"] == ""
    if not bits:
        assert found["message"] == ""
        return
    padded = "".join(str(int(bit)) for bit in bits).ljust((len(bits) + 7) // 8 * 8, "0")
    raw = bytes(int(padded[at : at + 8], 2) for at in range(0, len(padded), 8))
    assert found["message"] == _b64(raw) + "\n"


def test_half_a_byte_after_a_comment_is_ignored() -> None:
    body = Builder().store_uint(0, 32).store_bytes(b"hi").store_uint(5, 4).end_cell()
    assert render_message(_row(body))["message"] == "hi"


def test_a_comment_that_goes_on_in_an_exotic_cell_is_raw() -> None:
    library = Cell(
        Builder().store_uint(2, 8).store_bytes(bytes(32)).end_cell().bits, [], CellTypes.library_ref
    )
    body = Builder().store_uint(0, 32).store_ref(library).end_cell()
    assert render_message(_row(body))["msg_data"]["@type"] == "msg.dataRaw"
    assert render_message(_row(library))["msg_data"]["@type"] == "msg.dataRaw"


def test_what_a_message_lacks_is_empty_or_zero() -> None:
    body = Builder().end_cell()
    found = render_message(
        _row(body, source=None, source_workchain=None, value=None, fwd_fee=None, created_lt=None)
    )
    assert found["source"] == ""
    assert (found["value"], found["fwd_fee"], found["created_lt"]) == ("0", "0", "0")
    assert found["ihr_fee"] == "0"
    assert found["destination"] == Address((-1, b"\x11" * 32)).to_str()


def test_extra_currencies_are_listed_by_id() -> None:
    row = _row(
        Builder().end_cell(), value_extra_currencies='{"100":"7","9":"340282366920938463463"}'
    )
    assert render_message(row)["extra_currencies"] == [
        {"@type": "extraCurrency", "id": 9, "amount": "340282366920938463463"},
        {"@type": "extraCurrency", "id": 100, "amount": "7"},
    ]


def test_a_state_is_shown_beside_a_raw_body() -> None:
    state = Builder().store_uint(5, 5).end_cell()
    found = render_message(_row(Builder().end_cell(), init_state=state.to_boc()))
    shown = base64.b64decode(found["msg_data"]["init_state"])
    assert Cell.one_from_boc(shown).hash == state.hash


def test_the_demo_has_every_kind(ask: Asker) -> None:
    kinds: dict[str, int] = {}
    for digits in ("906bf7f953a0d966f183d07acebe0a2ae08900c859e3b145069af5c5c3def02d",):
        for tx in ask("getTransactions", address="0:" + digits, limit=1000):
            for message in [*([tx["in_msg"]] if "in_msg" in tx else []), *tx["out_msgs"]]:
                kinds[message["msg_data"]["@type"]] = kinds.get(message["msg_data"]["@type"], 0) + 1
                if message["msg_data"]["@type"] == "msg.dataText":
                    text = base64.b64decode(message["msg_data"]["text"]).decode()
                    assert message["message"] == text
    assert kinds["msg.dataText"] > 10
    assert kinds["msg.dataRaw"] > 10
