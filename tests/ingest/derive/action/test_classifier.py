"""Basic actions, hidden actions, and traces without any other action."""

import gc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.action.classifier import MAX_NODES, classify
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.model import Message
from tonlake.ingest.derive.action.protocol import jetton
from tonlake.ingest.derive.action.row import ActionRow, name_action
from tonlake.lake.schema.action_type import NAMES

A, B, C = account("a"), account("b"), account("c")


def types(actions: Sequence[ActionRow]) -> list[str]:
    return sorted(action.type for action in actions)


def test_transfer_with_comment(scene: Scene) -> None:
    scene.external(A).send(B, Cell(0).text("hi"), value=5)
    action = scene.find("ton_transfer")
    assert action.success
    assert action.columns == {
        "source": A,
        "destination": B,
        "value": 5,
        "ton_transfer_data": {"content": "hi", "encrypted": False},
    }
    assert action.accounts == sorted([A, B])
    assert action.action_id == name_action(scene.steps[1].message.msg_hash, "ton_transfer")


def test_encrypted_comment_is_base64(scene: Scene) -> None:
    scene.external(A).send(B, Cell(0x2167DA4B).text("\x01\x02"))
    data = scene.find("ton_transfer").columns["ton_transfer_data"]
    assert data == {"content": "AQI=", "encrypted": True}


@pytest.mark.parametrize(
    ("end_status", "bounce", "success"),
    [
        ("active", False, False),
        ("uninit", False, True),
        ("uninit", True, False),
        ("nonexist", False, False),
    ],
)
def test_transfer_that_was_aborted(end_status: str, *, bounce: bool, success: bool) -> None:
    scene = Scene()
    step = scene.external(A).send(B, bounce=bounce).abort()
    step.statuses = ("active", end_status)
    assert scene.find("ton_transfer").success is success


@pytest.mark.parametrize(("value", "success"), [(0, True), (1, False)])
def test_call_that_was_aborted(scene: Scene, value: int, *, success: bool) -> None:
    scene.external(A).send(B, opcode=0x12345678, value=value).abort()
    assert scene.find("call_contract").success is success


def test_extra_currencies(scene: Scene) -> None:
    scene.external(A).send(B, extra={"100": "7"})
    action = scene.find("extra_currency_transfer")
    assert action.columns["value_extra_currencies"] == {"100": "7"}


def test_deployment_is_a_separate_action(scene: Scene) -> None:
    scene.external(A).send(B, opcode=0x12345678).deploy()
    actions = scene.classify()
    assert types(actions) == ["call_contract", "contract_deploy"]
    assert scene.find("contract_deploy").columns["destination"] == B


def test_logs_and_messages_from_outside_are_no_actions(scene: Scene) -> None:
    root = scene.external(A)
    root.send(B)
    root.send(None, opcode=0x12345678)
    assert types(scene.classify()) == ["ton_transfer"]


def test_nothing_left_is_unknown(scene: Scene) -> None:
    scene.external(A).send(None, opcode=0x12345678)
    (action,) = scene.classify()
    assert (action.type, action.success) == ("unknown", True)
    assert action.action_id == scene.trace().trace_id


@pytest.mark.parametrize("sends", [False, True])
def test_clock_is_an_action_if_it_sends(scene: Scene, *, sends: bool) -> None:
    root = scene.external(A)
    if sends:
        root.send(B)
    trace = scene.trace()
    trace.external_hash = trace.transactions[0].in_msg = None
    trace.transactions[0].is_tick_tock = True
    actions = classify(trace, Interfaces()).actions
    assert types(actions) == (["tick_tock", "ton_transfer"] if sends else [])


def test_trace_with_a_hole_is_classified_by_its_parts(scene: Scene) -> None:
    middle = scene.external(A).send(B, opcode=1)
    middle.send(C)
    scene.steps.remove(middle)
    trace = scene.trace()
    trace.state = "broken"
    state, actions = classify(trace, Interfaces())
    assert state == "broken"
    assert "ton_transfer" in types(actions)


def test_children_show_unless_old_clients_know_the_action(scene: Scene) -> None:
    vesting = scene.external(A).send(B, whitelist())
    vesting.send(A, Cell(0xF258A69B).uint(1, 64))
    actions = scene.classify()
    parent = scene.find("vesting_add_whitelist")
    children = [action for action in actions if action.ancestor_type]
    assert len(children) == 2
    assert {child.parent_action_id for child in children} == {parent.action_id}
    assert {tuple(child.ancestor_type) for child in children} == {("vesting_add_whitelist",)}
    assert parent.type not in NAMES["v1"]


def test_nothing_is_left_for_the_collector(scene: Scene) -> None:
    vesting = scene.external(A).send(B, whitelist()).deploy()
    vesting.send(A, Cell(0xF258A69B).uint(1, 64)).send(None, opcode=1)
    trace = scene.trace()
    classify(trace, Interfaces())  # what is made once is made now
    gc.collect()
    gc.disable()
    try:
        classified = classify(trace, Interfaces())
        assert gc.collect() == 0
    finally:
        gc.enable()
    assert len(classified.actions) > 2


def whitelist() -> Cell:
    """Return a body that adds one account to a whitelist."""
    return Cell(0x7258A69B).uint(1, 64).address(C)


def make_external(tree: CellTree, to: str, body: Cell) -> Message:
    """Return an external message to a wallet v3 that sends one message."""
    inner = CellBuilder(tree).store_uint(0b011000, 6).store_uint(0b100, 3).store_int(0, 8)
    inner.store_uint(int(to.removeprefix("0:"), base=16), 256).store_coins(5)
    inner.store_uint(0, 1 + 4 + 4 + 64 + 32 + 1).store_uint(1, 1).store_ref(body.end())
    outer = CellBuilder(tree).store_uint(0, 512).store_uint(0, 96).store_uint(3, 8)
    root = outer.store_ref(inner.end()).end()
    return Message(msg_hash=b"e" * 32, source=None, destination=A, boc=serialize_boc(tree, (root,)))


def test_message_that_was_never_sent(scene: Scene) -> None:
    scene.external(A)
    trace = scene.trace()
    tree = CellTree()
    trace.transactions[0].in_msg = make_external(tree, B, Cell(0, tree).text("x"))
    (action,) = classify(trace, Interfaces()).actions
    assert (action.type, action.success) == ("ton_transfer", False)
    assert action.columns["destination"] == B
    assert action.columns["value"] == 5
    assert action.accounts == [A]


def test_jettons_that_were_never_sent(scene: Scene) -> None:
    scene.external(A)
    trace = scene.trace()
    tree = CellTree()
    body = Cell(jetton.TRANSFER, tree).uint(1, 64).coins(9).address(C).address(A)
    body.uint(0, 1).coins(0).uint(0, 1)
    trace.transactions[0].in_msg = make_external(tree, B, body)
    facts = {B: {"JettonWallet": {"owner": A, "jetton": account("master")}}}
    (action,) = classify(trace, Interfaces(facts)).actions
    assert (action.type, action.success) == ("jetton_transfer", False)
    assert action.columns["amount"] == 9
    assert action.accounts == sorted([A, B])


@pytest.mark.parametrize("count", [MAX_NODES - 10, MAX_NODES + 10])
def test_large_traces(scene: Scene, count: int) -> None:
    scene.know_wallet(B, A, account("master"))
    step = root = scene.external(A)
    root.send_jettons(B, C, C, 9)
    for number in range(count - 3):
        step = (root if number % 2 else step).send(account(str(number)), opcode=1)
    found = types(scene.classify())
    assert ("jetton_transfer" in found) is (count <= MAX_NODES)
    assert "call_contract" in found


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0, 1, 2, 3, 0x0F8A7EA5, 0x178D4519])))
)
def test_each_message_is_in_one_action_at_most(sends: list[tuple[int, int]]) -> None:
    scene = Scene()
    scene.know_wallet(account("0"), A, account("master"))
    steps = [scene.external(A)]
    for parent, opcode in sends:
        to = account(str(len(steps) % 3))
        steps.append(steps[parent % len(steps)].send(to, Cell(opcode).uint(0, 300)))
    actions = [action for action in scene.classify() if not action.ancestor_type]
    ids = [action.action_id for action in actions]
    assert len(set(ids)) == len(ids)
    held = {tx_hash for action in actions for tx_hash in action.tx_hashes}
    assert held == {step.make().tx_hash for step in steps}
