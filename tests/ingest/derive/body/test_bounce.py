"""Bounced bodies in both forms: TEP-503 since global version 12, and the one before."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from pytoniq_core import Cell, begin_cell

from tests.ingest.derive.body.encode import show_bag
from tonlake.api.v3.route.balance import read_jettons
from tonlake.ingest.command.action import classify_recording

TRANSFER, INTERNAL, BURN_NOTE, EXCESS = 0x0F8A7EA5, 0x178D4519, 0x7BDD97DE, 0xD53276DB
AMOUNT = 5_000_000


def start(opcode: int) -> Any:
    return begin_cell().store_uint(opcode, 32).store_uint(77, 64).store_coins(AMOUNT)


def bounce(original: Cell, phase: int, exit_code: int, *, ran: bool) -> bytes:
    info = begin_cell().store_coins(10**8).store_bit(0).store_uint(9, 64).store_uint(8, 32)
    body = begin_cell().store_uint(0xFFFFFFFE, 32).store_ref(original).store_ref(info.end_cell())
    body = body.store_uint(phase, 8).store_int(exit_code, 32).store_bit(int(ran))
    if ran:
        body = body.store_uint(3000, 32).store_uint(77, 32)
    return bytes(body.end_cell().to_boc())


def receive(boc: bytes) -> int:
    return read_jettons({"direction": "in", "kind": "int", "body": boc})


@pytest.mark.parametrize(
    ("phase", "exit_code", "ran"), [(0, -3, False), (1, 48, True), (2, 37, True)]
)
def test_new_form_is_decoded(phase: int, exit_code: int, ran: bool) -> None:  # noqa: FBT001
    original = begin_cell().store_uint(EXCESS, 32).store_uint(77, 64).end_cell()
    name, value = show_bag(bounce(original, phase, exit_code, ran=ran))
    assert name == value["@type"] == "new_bounce"
    assert value["original_body"] == {"@type": "excess", "query_id": "77"}
    assert (value["bounced_by_phase"], value["exit_code"]) == (str(phase), str(exit_code))
    assert value["original_info"]["created_lt"] == "9"
    assert ("value" in value["compute_phase"]) == ran


def test_an_unknown_original_body_is_kept() -> None:
    original = begin_cell().store_uint(0xDEADBEEF, 32).end_cell()
    _name, value = show_bag(bounce(original, 1, 7, ran=True))
    assert value["original_body"] == base64.b64encode(original.to_boc()).decode()


@pytest.mark.parametrize("opcode", [INTERNAL, BURN_NOTE])
def test_jettons_return_in_both_forms(opcode: int) -> None:
    old = begin_cell().store_uint(0xFFFFFFFF, 32).store_uint(opcode, 32).store_uint(77, 64)
    old_body = old.store_coins(AMOUNT).end_cell().to_boc()
    new_body = bounce(start(opcode).end_cell(), 1, 48, ran=True)
    assert receive(old_body) == receive(new_body) == AMOUNT


def test_nothing_else_returns_jettons() -> None:
    assert receive(bounce(start(TRANSFER).end_cell(), 1, 48, ran=True)) == 0
    assert receive(bounce(begin_cell().end_cell(), 1, 48, ran=True)) == 0
    assert receive(begin_cell().store_uint(0xFFFFFFFE, 32).end_cell().to_boc()) == 0


def test_reported_bodies(shared: Path) -> None:
    folder = shared / "data" / "reports" / "03-bounce-tep503"
    bodies = [bytes.fromhex((folder / f"bounce_{form}.hex").read_text()) for form in ("old", "new")]
    assert [receive(body) for body in bodies] == [AMOUNT, AMOUNT]
    name, value = show_bag(bodies[1])
    assert name == "new_bounce"
    assert value["original_body"]["amount"]["value"] == str(AMOUNT)
    assert value["exit_code"] == "48"


@pytest.mark.parametrize(
    ("name", "kind", "exit_code"),
    [
        ("f8a7ea5", "jetton_transfer", 706),
        ("5fcc3d14", "nft_transfer", 401),
        ("595f07bc", "jetton_burn", 706),
    ],
)
def test_reported_traces_have_the_actions_of_the_other_form(
    shared: Path, tmp_path: Path, name: str, kind: str, exit_code: int
) -> None:
    path = shared / "data" / "reports" / "03-bounce-tep503" / f"trace_{name}.jsonl"
    recorded = json.loads(path.read_text())
    body = recorded["transactions"][2]["in_msg"]["body_boc"]
    value = show_bag(base64.b64decode(body))[1]
    assert (value["@type"], value["original_body"]["@type"]) == ("new_bounce", kind)
    assert value["exit_code"] == str(exit_code)
    original = Cell.one_from_boc(body).refs[0].bits[:256]
    old = begin_cell().store_uint(0xFFFFFFFF, 32).store_bits(original).end_cell().to_boc()
    for transaction in recorded["transactions"]:
        for each in (transaction["in_msg"], *transaction["out_msgs"]):
            if each["body_boc"] == body:
                each |= {"body_boc": base64.b64encode(old).decode(), "opcode": -1}
    (tmp_path / "old.jsonl").write_text(json.dumps(recorded))
    forms = [json.loads(*classify_recording(each)) for each in (path, tmp_path / "old.jsonl")]
    (first, bounced), (old_first, old_bounced) = (form["actions"] for form in forms)
    assert (first, first["success"]) == (old_first, False)
    why = {"bounced_by_phase": 1, "exit_code": exit_code}
    assert bounced == {**old_bounced, "opcode": 0xFFFFFFFE, "extra": why}
