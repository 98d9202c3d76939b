"""Cocoon rules on built traces; types with recordings are compared elsewhere."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.protocol import cocoon

OWNER, CLIENT, PROXY, ROOT = (account(name) for name in ("owner", "client", "proxy", "root"))


def test_top_up_names_client_and_proxy(scene: Scene) -> None:
    body = Cell(cocoon.TOP_UP).uint(5, 64).coins(700).address(OWNER)
    sent = scene.external(OWNER).send(CLIENT, body)
    sent.send(PROXY, opcode=cocoon.CLIENT_REQUEST).send(OWNER, opcode=cocoon.EXCESSES)
    action = scene.find("cocoon_client_top_up")
    assert action.success
    assert action.columns == {
        "source": OWNER,
        "destination": CLIENT,
        "destination_secondary": PROXY,
        "amount": 700,
        "cocoon_client_top_up_data": {"query_id": 5},
    }


@pytest.mark.parametrize(
    ("opcode", "kind", "data"),
    [
        (cocoon.REGISTER_PROXY, "cocoon_register_proxy", {"query_id": 9}),
        (cocoon.UNREGISTER_PROXY, "cocoon_unregister_proxy", {"query_id": 9, "seqno": 3}),
    ],
)
@pytest.mark.parametrize("fails", [False, True])
def test_proxies_come_and_go(opcode: int, kind: str, data: dict[str, int], *, fails: bool) -> None:
    scene = Scene()
    sent = scene.external(PROXY).send(ROOT, Cell(opcode).uint(9, 64).uint(3, 32))
    if fails:
        sent.abort()
    sent.send(PROXY, opcode=cocoon.EXCESSES)
    action = scene.find(kind)
    assert action.columns == {"destination": ROOT, f"{kind}_data": data}
    assert action.success is not fails


@pytest.mark.parametrize("via_wallet", [False, True])
def test_refund_is_requested(scene: Scene, *, via_wallet: bool) -> None:
    step = scene.external(OWNER)
    if via_wallet:
        step = step.send(OWNER, opcode=cocoon.WALLET_SEND)
    sent = step.send(CLIENT, Cell(cocoon.REQUEST_REFUND).uint(4, 64).address(OWNER))
    sent.send(OWNER, opcode=cocoon.EXCESSES)
    sent.send(PROXY, opcode=cocoon.CLIENT_REQUEST)
    action = scene.find("cocoon_client_request_refund")
    data = {"query_id": 4, "via_wallet": via_wallet}
    assert action.columns["cocoon_client_request_refund_data"] == data
    assert (action.columns["source"], action.columns["destination"]) == (OWNER, CLIENT)


def test_last_payout_without_excesses(scene: Scene) -> None:
    worker, paid = account("worker"), account("paid")
    asked = Cell(cocoon.LAST_WORKER_PAYOUT).uint(1, 64).uint(2, 64)
    request = Cell(cocoon.WORKER_REQUEST).uint(1, 64).address(paid).uint(1, 2).uint(77, 64)
    passed = scene.external(PROXY).send(worker, asked).send(PROXY, request)
    passed.send(paid, opcode=cocoon.PAYOUT, value=33).abort()
    action = scene.find("cocoon_worker_payout")
    assert not action.success
    assert action.columns["source"] == PROXY
    assert action.columns["amount"] == 33
    assert action.columns["cocoon_worker_payout_data"] == {
        "payout_type": "last",
        "query_id": 1,
        "new_tokens": 2,
        "worker_state": 1,
        "worker_tokens": 77,
    }


def test_without_its_answer_it_is_a_call(scene: Scene) -> None:
    scene.external(OWNER).send(CLIENT, Cell(cocoon.REGISTER).uint(1, 64).uint(2, 64))
    assert [action.type for action in scene.classify()] == ["call_contract"]
