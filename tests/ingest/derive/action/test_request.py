"""Requests to wallets that others pay for: opcodes, markers, links, and what was not sent."""

from __future__ import annotations

import base64

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tests.ingest.derive.action.test_ghost import OTHER, WALLET, ask, write_message
from tonlake.ingest.derive.action import request
from tonlake.ingest.derive.action.row import EXTRA, PARENT_GASLESS, show_actions

RELAYER, SECOND = account("relayer"), account("second wallet")


def write_head(opcode: int) -> Cell:
    """Write signature, opcode, subwallet_id, valid_until and seqno."""
    return Cell().uint(0xA5 << 504, 512).uint(opcode, 32).uint(0, 96)


def write_bulk(opcode: int, *values: int) -> Cell:
    """Write a request for several messages, each in a chunk of its own."""
    body = write_head(opcode).uint(len(values), 8)
    chunk: Cell | None = None
    for value in reversed(values):
        following = body.child()
        if chunk is None:
            following.uint(0, 1)
        else:
            following.uint(1, 1).ref(chunk)
        message = write_message(body, OTHER, value, body.child())
        chunk = following.uint(3, 8).ref(message)
    assert chunk is not None
    return body.uint(1, 1).ref(chunk)


def pay_for(opcode: int = request.SEND_BULK) -> tuple[Scene, Step]:
    """Return a scene in which a relayer brings a request to a wallet."""
    scene = Scene()
    body = Cell(opcode).uint(0, 700) if opcode == request.W5_INTERNAL else write_bulk(opcode, 1)
    return scene, scene.external(RELAYER).send(WALLET, body, value=5_000_000)


@pytest.mark.parametrize("opcode", [request.SEND_BULK, request.SEND_ONE, request.W5_INTERNAL])
def test_a_paid_request_has_an_action_and_its_messages_name_it(opcode: int) -> None:
    scene, step = pay_for(opcode)
    step.send(OTHER, value=7)
    paid = scene.find("gasless_request")
    called = scene.find("call_contract")
    sent = scene.find("ton_transfer")
    assert paid.success
    assert (paid.columns["source"], paid.columns["destination"]) == (RELAYER, WALLET)
    assert (paid.columns["value"], paid.columns["opcode"]) == (5_000_000, None)
    assert len(paid.tx_hashes) == 2
    assert called.columns["opcode"] == opcode
    assert EXTRA not in paid.columns | called.columns
    assert sent.columns[EXTRA] == {PARENT_GASLESS: base64.b64encode(paid.action_id).decode()}
    shown = {each["type"]: each for each in show_actions(scene.trace(), scene.classify())}
    assert shown["ton_transfer"]["extra"] == sent.columns[EXTRA]


def test_a_request_inside_a_request_names_the_outer_one() -> None:
    scene, outer = pay_for()
    inner = outer.send(SECOND, write_bulk(request.SEND_BULK, 1), value=1)
    inner.send(OTHER, value=2)
    actions = scene.classify()
    paid = {each.columns["destination"]: each for each in actions if each.type == "gasless_request"}
    sent = next(each for each in actions if each.type == "ton_transfer")
    outer_id, inner_id = (
        base64.b64encode(paid[each].action_id).decode() for each in (WALLET, SECOND)
    )
    assert paid[SECOND].columns[EXTRA] == {PARENT_GASLESS: outer_id}
    assert sent.columns[EXTRA] == {PARENT_GASLESS: inner_id}


def test_requests_from_outside_are_paid_by_the_wallet() -> None:
    scene = Scene()
    step = scene.external(WALLET)
    assert step.message is not None
    step.message.boc = write_bulk(request.SEND_BULK_EXTERNAL, 1).boc()
    step.send(OTHER, value=1)
    assert [action.type for action in scene.classify()] == ["ton_transfer"]


@pytest.mark.parametrize("opcode", [0x12345678, request.SEND_BULK_EXTERNAL])
def test_other_calls_are_not_paid_requests(opcode: int) -> None:
    scene = Scene()
    scene.external(RELAYER).send(WALLET, write_bulk(opcode, 1))
    found = [action.type for action in scene.classify()]
    assert "gasless_request" not in found


def test_opcodes_stay_where_no_request_follows_the_signature() -> None:
    scene = Scene()
    text = request.SEND_ONE.to_bytes(4, "big").decode("latin-1")
    scene.external(RELAYER).send(WALLET, Cell(7).text(text * 20))
    assert scene.find("call_contract").columns["opcode"] == 7


def test_messages_of_a_refused_request() -> None:
    scene = ask(write_bulk(request.SEND_BULK_EXTERNAL, 5, 6))
    assert [(each.type, each.columns["value"]) for each in scene.classify()] == [
        ("ton_transfer", 5),
        ("ton_transfer", 6),
    ]
    body = write_head(request.SEND_ONE_EXTERNAL).uint(3, 8)
    scene = ask(body.ref(write_message(body, OTHER, 9, body.child())))
    assert scene.find("ton_transfer").columns["value"] == 9
    body = write_head(request.CHANGE_KEY_EXTERNAL).uint(1, 256)
    assert ask(body.ref(body.child()).ref(body.child())).find("unknown").success is False
