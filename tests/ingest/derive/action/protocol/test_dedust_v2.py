"""DeDust v2 rules on built traces, and on all of its recorded ones against TON Center."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.derive.action.compared import compare, read_classified
from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import dedust_v2

OWNER, POOL, NEXT_POOL = (account(name) for name in ("owner", "pool", "next pool"))
COIN, OTHER = account("coin"), account("other coin")
POOL_WALLET, NEXT_WALLET, WALLET = (account(n) for n in ("pool wallet", "next wallet", "wallet"))


def write_swap(payload: Cell, steps: int = 0) -> Cell:
    """Write the payload of a swap with further steps; the minimum amounts are 5, 6 and so on."""
    return _write_steps(payload.uint(dedust_v2.SWAP, 32), 5, steps)


def _write_steps(cell: Cell, min_out: int, left: int) -> Cell:
    cell.coins(min_out).uint(9, 40)
    if not left:
        return cell.uint(0, 1)
    step = cell.child().address(NEXT_POOL)
    return cell.uint(1, 1).ref(_write_steps(step, min_out + 1, left - 1))


def pay(amount: int, steps: int = 0) -> Cell:
    """Return coins sent to a pool."""
    body = Cell(dedust_v2.PAY_NATIVE).uint(1, 64).coins(amount)
    return body.ref(write_swap(body.child(), steps)).ref(body.child())


def pay_jettons(payload: Cell) -> Cell:
    """Write the forward payload of jettons sent to a pool."""
    payload.uint(dedust_v2.PAY_JETTON, 32)
    return payload.ref(write_swap(payload.child())).ref(payload.child())


def log(came: int, went: int) -> Cell:
    return Cell(dedust_v2.SWAP_LOG).uint(1, 1).coins(came).coins(went)


def payout(amount: int, exit_code: int = 0) -> Cell:
    return Cell(dedust_v2.PAYOUT).uint(1, 64).coins(amount).int(exit_code, 32)


def swap_twice(scene: Scene) -> Step:
    """Swap coins for jettons and those for others; return the last pool's step."""
    scene.know_wallet(POOL_WALLET, POOL, COIN)
    scene.know_wallet(account("next pool's other wallet"), NEXT_POOL, OTHER)
    pool = scene.external(OWNER).send(POOL, pay(70, steps=1))
    pool.send(None, log(69, 30))
    wallet = pool.send_jettons(POOL_WALLET, NEXT_POOL, NEXT_WALLET, 30, pay_jettons)
    last = wallet.send(NEXT_POOL, opcode=0x7362D09C)
    last.send(None, log(30, 8))
    last.send_jettons(account("next pool's other wallet"), OWNER, WALLET, 8)
    return last


def test_swap_of_two_hops(scene: Scene) -> None:
    swap_twice(scene)
    action = scene.find("jetton_swap")
    assert action.success
    assert (action.columns["asset"], action.columns["asset2"]) == (None, OTHER)
    data = action.columns["jetton_swap_data"]
    assert (data["dex"], data["min_out_amount"]) == ("dedust_v2", 6)
    assert data["dex_incoming_transfer"]["amount"] == 69
    assert data["dex_outgoing_transfer"]["amount"] == 8
    assert [tuple(hop.values()) for hop in data["peer_swaps"]] == [
        (None, 69, COIN, 30),
        (COIN, 30, OTHER, 8),
    ]


def test_swap_of_one_hop_has_no_peers_and_fails_with_its_log(scene: Scene) -> None:
    scene.know_wallet(POOL_WALLET, POOL, COIN)
    pool = scene.external(OWNER).send(POOL, pay(70)).abort()
    pool.send(None, log(70, 30))
    pool.send_jettons(POOL_WALLET, OWNER, WALLET, 30)
    action = scene.find("jetton_swap")
    assert not action.success
    assert action.columns["jetton_swap_data"]["peer_swaps"] == []
    assert action.columns["jetton_swap_data"]["min_out_amount"] == 5


def test_jettons_left_with_an_order_end_no_swap(scene: Scene) -> None:
    scene.know_wallet(POOL_WALLET, POOL, COIN)
    pool = scene.external(OWNER).send(POOL, pay(70, steps=1))
    pool.send(None, log(69, 30))
    pool.send_jettons(POOL_WALLET, NEXT_POOL, NEXT_WALLET, 30, pay_jettons)
    assert "jetton_swap" not in {action.type for action in scene.classify()}


@pytest.mark.parametrize(("exit_code", "receiver"), [(30, OWNER), (0, OWNER), (30, NEXT_POOL)])
def test_refused_swap_pays_the_sender_back(scene: Scene, exit_code: int, receiver: str) -> None:
    assets = [{"is_ton": True, "address": None}, {"is_ton": False, "address": COIN}]
    scene.know(POOL, "DedustPool", assets=assets)
    pool = scene.external(OWNER).send(POOL, pay(70))
    pool.send(receiver, payout(70, exit_code))
    if (exit_code, receiver) != (30, OWNER):
        assert "jetton_swap" not in {action.type for action in scene.classify()}
        return
    action = scene.find("jetton_swap")
    assert not action.success
    assert (action.columns["destination"], action.columns["asset2"]) == (OWNER, COIN)
    assert action.columns["jetton_swap_data"]["dex_outgoing_transfer"]["amount"] == 0


def test_each_pool_of_a_long_route_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, hops = Scene(), 200
    reads: list[Any] = []
    step = scene.external(OWNER)
    for number in range(hops):
        step = step.send(account(f"pool {number}"), pay(7))
        step.send(None, log(7, 7))
    read = dedust_v2.read_order

    def count(block: Any) -> Any:
        reads.append(block)
        return read(block)

    monkeypatch.setattr(dedust_v2, "read_order", count)
    scene.classify()
    assert hops <= len(reads) < 20 * hops


TYPES = {
    *("jetton_swap", "dex_deposit_liquidity", "dex_withdraw_liquidity"),
    *("dedust_v2_claim_fees", "dedust_v2_claim_reward"),
}


def test_recorded_actions_are_theirs(shared: Path) -> None:
    data = shared / "data/classifier-new"
    mine = read_classified(data / "traces.jsonl.zst")
    theirs = json.loads((data / "peer_actions.json").read_bytes())
    for one, other in ((mine, theirs), (theirs, mine)):
        assert not [each for each in compare(one, other).differences if each[1] in TYPES]
    assert {action["type"] for each in theirs.values() for action in each["actions"]} >= TYPES
