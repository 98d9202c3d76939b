"""Jetton rules on built traces."""

import base64
from collections.abc import Callable

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.command.action import explain
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.tree import LIBRARY
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.protocol import jetton

OWNER, RECEIVER, MASTER = account("owner"), account("receiver"), account("master")
FROM, TO = account("wallet of owner"), account("wallet of receiver")


def know_wallets(scene: Scene) -> None:
    """Declare the owners of both jetton wallets."""
    scene.know_wallet(FROM, OWNER, MASTER)
    scene.know_wallet(TO, RECEIVER, MASTER)


def arrive(amount: int = 500) -> Cell:
    """Return the body of an internal transfer."""
    inner = Cell(jetton.INTERNAL).uint(7, 64).coins(amount).address(OWNER).address(OWNER)
    return inner.coins(1).uint(0, 1)


def send_jettons(step: Step) -> Step:
    """Send jettons from the owner's wallet; return the receiving wallet's step."""
    know_wallets(step.scene)
    return step.send_jettons(FROM, RECEIVER, TO, 500)


def test_transfer_names_owners_and_wallets(scene: Scene) -> None:
    step = send_jettons(scene.external(OWNER))
    step.send(RECEIVER, Cell(jetton.NOTIFY).uint(7, 64).coins(500).address(OWNER).uint(0, 1))
    step.send(OWNER, opcode=0xD53276DB)
    actions = scene.classify()
    assert [action.type for action in actions] == ["jetton_transfer"]
    columns = actions[0].columns
    assert columns["source"] == OWNER
    assert columns["source_secondary"] == FROM
    assert columns["destination"] == RECEIVER
    assert columns["destination_secondary"] == TO
    assert columns["asset"] == MASTER
    assert columns["amount"] == 500
    assert columns["jetton_transfer_data"]["query_id"] == 7
    assert columns["jetton_transfer_data"]["comment"] is None
    assert len(actions[0].tx_hashes) == len(scene.steps)
    assert set(actions[0].accounts) == {OWNER, FROM, RECEIVER, TO}


def test_comment_of_transfer(scene: Scene) -> None:
    root = scene.external(OWNER)
    body = Cell(jetton.TRANSFER).uint(7, 64).coins(5).address(RECEIVER).address(None)
    body.uint(0, 1).coins(1).uint(1, 1)
    body.ref(body.child().uint(0, 32).text("hello"))
    know_wallets(scene)
    root.send(FROM, body).send(TO, arrive(5))
    data = scene.find("jetton_transfer").columns["jetton_transfer_data"]
    assert data["comment"] == "hello"
    assert data["is_encrypted_comment"] is False


def test_transfer_that_failed_on_arrival(scene: Scene) -> None:
    arrival = send_jettons(scene.external(OWNER)).abort()
    arrival.send(FROM, opcode=0xFFFFFFFF)
    action = scene.find("jetton_transfer")
    assert not action.success
    assert len(scene.classify()) == 1


def test_amounts_are_those_that_arrive(scene: Scene) -> None:
    know_wallets(scene)
    body = Cell(jetton.TRANSFER).uint(7, 64).coins(500).address(RECEIVER).address(OWNER)
    scene.external(OWNER).send(FROM, body.uint(0, 1).coins(9).uint(0, 1)).send(TO, arrive(490))
    columns = scene.find("jetton_transfer").columns
    assert columns["amount"] == 490
    assert columns["jetton_transfer_data"]["forward_amount"] == 1


@pytest.mark.parametrize("arrived_at", [RECEIVER, MASTER])
def test_trace_is_broken_where_jettons_arrive_at_another_owner(arrived_at: str) -> None:
    scene = Scene()
    send_jettons(scene.external(OWNER))
    scene.know_wallet(TO, arrived_at, MASTER)
    assert scene.find("jetton_transfer").columns["destination"] == arrived_at
    assert scene.state() == ("ok" if arrived_at == RECEIVER else "broken")
    (line,) = (line for line in explain(scene.trace(), Interfaces(scene.facts)) if TO[:9] in line)
    assert ("jetton_transfer broken" in line) is (arrived_at != RECEIVER)


def test_transfer_to_an_unknown_wallet_remains_calls(scene: Scene) -> None:
    send_jettons(scene.external(OWNER))
    del scene.facts[TO]
    assert {action.type for action in scene.classify()} == {"call_contract"}


def test_transfer_rejected_by_the_wallet_remains_a_call(scene: Scene) -> None:
    scene.know_wallet(FROM, OWNER, MASTER)
    scene.external(OWNER).send(FROM, opcode=jetton.TRANSFER).abort()
    action = scene.find("call_contract")
    assert action.columns["opcode"] == jetton.TRANSFER
    assert not action.success


def test_pton_transfer_has_no_wallet(scene: Scene) -> None:
    pton = min(jetton.PTON_MASTERS)
    scene.know_wallet(FROM, OWNER, pton)
    body = Cell(jetton.TRANSFER).uint(7, 64).coins(9).address(RECEIVER).address(OWNER)
    scene.external(OWNER).send(FROM, body.uint(0, 1).coins(0).uint(0, 1)).send(
        RECEIVER, opcode=jetton.NOTIFY
    )
    action = scene.find("jetton_transfer")
    assert action.columns["asset"] == pton
    assert action.columns["source_secondary"] is None
    assert action.columns["amount"] == 9


@pytest.mark.parametrize("aborted", [False, True])
def test_burn(scene: Scene, *, aborted: bool) -> None:
    scene.know_wallet(FROM, OWNER, MASTER)
    step = scene.external(OWNER).send(
        FROM, Cell(jetton.BURN).uint(1, 64).coins(77).address(OWNER).uint(0, 1)
    )
    if aborted:
        step.abort()
    else:
        step.send(MASTER, opcode=jetton.BURN_NOTIFICATION)
    action = scene.find("jetton_burn")
    assert action.success is not aborted
    assert action.columns["amount"] == 77
    assert action.columns["asset"] == MASTER
    assert action.columns["source_secondary"] == FROM


@pytest.mark.parametrize("arrives", [False, True])
def test_mint(scene: Scene, *, arrives: bool) -> None:
    know_wallets(scene)
    body = Cell(jetton.MINT).uint(1, 64).address(RECEIVER).coins(20_000_000)
    step = scene.external(OWNER).send(MASTER, body)
    if arrives:
        step.send(TO, Cell(jetton.INTERNAL).uint(1, 64).coins(12_345)).deploy()
    action = scene.find("jetton_mint")
    assert action.success is arrives
    assert action.columns["destination"] == RECEIVER
    assert action.columns["amount"] == (12_345 if arrives else None)
    assert action.columns["value"] == 20_000_000
    assert [each.type for each in scene.classify() if each.type == "contract_deploy"] == (
        ["contract_deploy"] if arrives else []
    )


def test_a_truncated_body_is_not_a_transfer(scene: Scene) -> None:
    scene.know_wallet(FROM, OWNER, MASTER)
    scene.external(OWNER).send(FROM, opcode=jetton.TRANSFER).send(TO, opcode=jetton.INTERNAL)
    assert {action.type for action in scene.classify()} == {"call_contract"}


def write_exotic_comment(body: Cell) -> Cell:
    """Write a comment that continues in a library cell."""
    return body.uint(0, 1).coins(1).uint(0, 1).uint(0, 32).text("a").ref(body.library())


@pytest.mark.parametrize(
    ("response", "write"),
    [
        pytest.param((0, 2), lambda body: body.uint(0, 1).coins(1).uint(1, 1), id="lacks ref"),
        pytest.param((0, 2), write_exotic_comment, id="exotic comment"),
        pytest.param((0b01_000000011_101, 14), lambda body: body.uint(0, 1).coins(1), id="extern"),
        pytest.param(
            (0b11_0_000000001 << 33 | 1, 45), lambda body: body.uint(0, 1).coins(1), id="var"
        ),
    ],
)
def test_fields_that_a_wallet_ignores_do_not_hide_a_transfer(
    scene: Scene, response: tuple[int, int], write: Callable[[Cell], Cell]
) -> None:
    know_wallets(scene)
    body = Cell(jetton.TRANSFER).uint(7, 64).coins(500).address(RECEIVER).uint(*response)
    scene.external(OWNER).send(FROM, write(body)).send(TO, arrive())
    columns = scene.find("jetton_transfer").columns
    assert columns["amount"] == 500
    assert columns["jetton_transfer_data"]["response_destination"] is None
    assert columns["jetton_transfer_data"]["comment"] is None


def test_payload_that_is_a_library_cell(scene: Scene) -> None:
    know_wallets(scene)
    body = Cell(jetton.TRANSFER).uint(7, 64).coins(500).address(RECEIVER).address(None)
    body.uint(1, 1).coins(1).uint(1, 1).ref(body.library()).ref(body.library())
    scene.external(OWNER).send(FROM, body).send(TO, arrive())
    data = scene.find("jetton_transfer").columns["jetton_transfer_data"]
    for name in ("custom_payload", "forward_payload"):
        tree = parse_boc(base64.b64decode(data[name]))
        assert tree.kind(tree.roots[0]) == LIBRARY
