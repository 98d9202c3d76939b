"""Actions of multisig orders: those of a genuine node, and one of every kind of body."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytoniq_core import Address, Cell, HashMap, begin_cell

from tonlake.api.v3.resource.order import OrderAction, read_order

OWNER, OTHER = Address("0:" + "1a" * 32), Address("-1:" + "2b" * 32)
RAW_OWNER, RAW_OTHER = "0:" + "1A" * 32, "-1:" + "2B" * 32
SWAP = 0x25938561


def _send(body: Cell, *, mode: int = 3) -> Cell:
    message = (
        begin_cell()
        .store_bits("011000")
        .store_address(OTHER)
        .store_coins(5_000)
        .store_bits("0" * (1 + 4 + 4 + 64 + 32 + 1))
        .store_bit(1)
        .store_ref(body)
        .end_cell()
    )
    head = begin_cell().store_uint(0xF1381E5B, 32).store_uint(mode, 8)
    return cast("Cell", head.store_ref(message).end_cell())


def _order(*actions: Cell) -> bytes:
    table = HashMap(8, value_serializer=lambda cell, target: target.store_ref(cell))
    for number, action in enumerate(actions):
        table.set_int_key(number, action)
    order = table.serialize()
    assert order is not None
    return cast("bytes", order.to_boc())


def _parse(body: Cell) -> OrderAction:
    (action,) = read_order(_order(_send(body)))
    assert action.error is None
    assert action.parsed
    return action


def _open(opcode: int, query_id: int = 7) -> Any:
    return begin_cell().store_uint(opcode, 32).store_uint(query_id, 64)


def _mint(opcode: int) -> Cell:
    inner = _open(0x178D4519, 8).store_coins(50).end_cell()
    body = _open(opcode).store_address(OWNER).store_coins(4)
    return cast("Cell", body.store_ref(inner).end_cell())


def _text(text: str) -> Cell:
    return cast("Cell", begin_cell().store_uint(0, 32).store_snake_string(text).end_cell())


def _jetton_transfer(payload: Callable[[Any], Any]) -> Cell:
    body = _open(0x0F8A7EA5).store_coins(100).store_address(OWNER).store_address(None)
    return cast("Cell", payload(body.store_bit(0).store_coins(9)).end_cell())


BODIES: dict[str, tuple[Cell, str, dict[str, Any]]] = {
    "nothing": (Cell.empty(), "ton_transfer", {"comment": "", "encrypted": False}),
    "text": (_text("hello"), "ton_transfer", {"comment": "hello", "encrypted": False}),
    "cipher": (
        begin_cell().store_uint(0x2167DA4B, 32).store_bytes(b"\x01\x02").end_cell(),
        "ton_transfer",
        {"comment": "AQI=", "encrypted": True},
    ),
    "burn": (
        _open(0x595F07BC).store_coins(3).store_address(OWNER).end_cell(),
        "jetton_burn",
        {"query_id": 7, "amount": "3", "response_destination": RAW_OWNER},
    ),
    "minter_mint": (
        _mint(0x15),
        "jetton_mint",
        {
            "opcode": 21,
            "query_id": 7,
            "to_address": RAW_OWNER,
            "ton_amount": "4",
            "master_msg_query_id": 8,
            "master_msg_jetton_amount": "50",
        },
    ),
    "direct_mint": (
        _mint(0x642B7D07),
        "jetton_mint",
        {"query_id": 7, "to_address": RAW_OWNER, "ton_amount": "4", "jetton_amount": "50"},
    ),
    "top_up": (_open(0xD372158C).end_cell(), "jetton_top_up", {"query_id": 7}),
    "change_admin": (
        _open(0x6501F354).store_address(None).end_cell(),
        "jetton_change_admin",
        {"query_id": 7, "new_admin_address": None},
    ),
    "claim_admin": (_open(0xFB88E119).end_cell(), "jetton_claim_admin", {"query_id": 7}),
    "change_content": (
        _open(0xCB862902).store_snake_string("https://a.example").end_cell(),
        "jetton_change_content",
        {"query_id": 7, "new_metadata_url": "https://a.example"},
    ),
    "set_status": (
        _open(0xEED236D3).store_uint(3, 4).end_cell(),
        "jetton_set_status",
        {"query_id": 7, "new_status": 3},
    ),
    "withdraw": (
        _open(0x1000).store_coins(11).end_cell(),
        "single_nominator_withdraw",
        {"query_id": 7, "coins": "11"},
    ),
    "change_validator": (
        _open(0x1001).store_address(OTHER).end_cell(),
        "single_nominator_change_validator",
        {"query_id": 7, "validator_address": RAW_OTHER},
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str) -> None:
    body, kind, fields = BODIES[name]
    action = _parse(body)
    assert action.parsed_body_type == kind
    assert action.parsed_body == fields
    assert (action.destination, action.value, action.send_mode) == (RAW_OTHER, "5000", 3)
    assert action.body_raw == base64.b64encode(body.to_boc(hash_crc32=True)).decode()


@pytest.mark.parametrize(
    ("payload", "sum_type", "extra"),
    [
        (Cell.empty(), "", {"comment": ""}),
        (_text("hi"), "TextComment", {"comment": "hi"}),
        (
            begin_cell().store_uint(0x2167DA4B, 32).store_bytes(b"\x01").end_cell(),
            "EncryptedTextComment",
            {"comment": "AQ==", "encrypted_comment": True},
        ),
        (
            begin_cell()
            .store_uint(SWAP, 32)
            .store_address(OTHER)
            .store_coins(2)
            .store_address(OWNER)
            .store_bit(0)
            .end_cell(),
            "StonfiSwap",
            {
                "stonfi_swap_body": {
                    "token_wallet": RAW_OTHER,
                    "min_out": "2",
                    "to_address": RAW_OWNER,
                    "referral_address": None,
                }
            },
        ),
        (begin_cell().store_uint(0xDEADBEEF00, 40).end_cell(), "Cell", {"comment": ""}),
    ],
)
def test_jetton_transfer(payload: Cell, sum_type: str, extra: dict[str, Any]) -> None:
    inline = _jetton_transfer(lambda body: body.store_bit(0).store_cell(payload))
    linked = _jetton_transfer(lambda body: body.store_bit(1).store_ref(payload))
    for body in (inline, linked):
        action = _parse(body)
        assert action.parsed_body_type == "jetton_transfer"
        fields = action.parsed_body or {}
        head = {"query_id": 7, "amount": "100", "destination": RAW_OWNER, "response": None}
        head |= {"custom_payload": None, "forward_amount": "9", "payload_sum_type": sum_type}
        assert fields == fields | head | extra
        if sum_type:
            assert Cell.one_from_boc(base64.b64decode(fields["forward_payload"])) == payload
        else:
            assert fields["forward_payload"] is None


def test_nft_transfer() -> None:
    body = _open(0x5FCC3D14).store_address(OWNER).store_address(OTHER)
    body = body.store_bit(1).store_ref(_text("x")).store_coins(6).store_bit(0)
    fields = _parse(body.end_cell()).parsed_body or {}
    assert Cell.one_from_boc(base64.b64decode(fields.pop("custom_payload"))) == _text("x")
    assert fields == {
        "query_id": 7,
        "new_owner": RAW_OWNER,
        "response_destination": RAW_OTHER,
        "forward_amount": "6",
        "forward_payload": None,
    }


def test_call_to() -> None:
    inner = _open(0xEED236D3).store_uint(1, 4).end_cell()
    body = _open(0x235CAF52).store_address(OWNER).store_coins(6).store_ref(inner).end_cell()
    fields = _parse(body).parsed_body or {}
    assert Cell.one_from_boc(base64.b64decode(fields.pop("action_data"))) == inner
    assert fields == {
        "query_id": 7,
        "to_address": RAW_OWNER,
        "ton_amount": "6",
        "action_type": "jetton_set_status",
    }


def test_vesting_send() -> None:
    inner = _send(_text("out")).refs[0]
    body = _open(0xA7733ACD).store_uint(3, 8).store_ref(inner).end_cell()
    fields = _parse(body).parsed_body or {}
    assert Cell.one_from_boc(base64.b64decode(fields.pop("message_body"))) == _text("out")
    assert fields == {
        "query_id": 7,
        "send_mode": 3,
        "destination": RAW_OTHER,
        "value": "5000",
        "comment": "out",
    }


def test_unknown_bodies_are_shown_as_they_are() -> None:
    for body, opcode in (
        (begin_cell().store_uint(0xDEADBEEF, 32).store_uint(1, 8).end_cell(), 0xDEADBEEF),
        (begin_cell().store_uint(5, 3).end_cell(), 0),
    ):
        action = _parse(body)
        assert action.parsed_body_type == "unknown"
        fields = action.parsed_body or {}
        assert fields["opcode"] == opcode
        assert Cell.one_from_boc(base64.b64decode(fields["data"])) == body


def test_unreadable_actions_have_a_reason() -> None:
    short = _send(begin_cell().store_uint(0x595F07BC, 32).end_cell())
    foreign = begin_cell().store_uint(1, 32).end_cell()
    actions = read_order(_order(short, foreign, _send(Cell.empty())))
    assert [action.parsed for action in actions] == [False, False, True]
    assert actions[0].destination == RAW_OTHER
    assert actions[0].error is not None
    assert "bits" in actions[0].error
    assert actions[1].error == "an order has no action 0x00000001"
    (whole,) = read_order(b"no bag of cells")
    assert (whole.parsed, whole.parsed_body_type) == (False, "unknown")
    assert whole.error


def test_orders_of_a_genuine_node(shared: Path) -> None:
    contracts = json.loads((shared / "node" / "expected.json").read_bytes())["contracts"]
    orders = [item for item in contracts if item["kind"] == "multisig_order_v2"]
    kinds = set()
    for order in orders:
        boc = order["get_methods"]["get_order_data"]["stack"][8]["boc"]
        for action in read_order(base64.b64decode(boc)):
            assert action.error is None
            kinds.add(action.parsed_body_type)
    assert orders
    assert kinds == {"ton_transfer", "multisig_update_params"}


@given(st.binary(max_size=60), st.integers(0, 3))
def test_garbage_never_raises(data: bytes, kind: int) -> None:
    opcode = (0x0F8A7EA5, 0xA7733ACD, 0x235CAF52, 0x15)[kind]
    body = begin_cell().store_uint(opcode, 32).store_bytes(data).end_cell()
    (action,) = read_order(_order(_send(body)))
    assert action.parsed is (action.error is None)
