"""Ston.fi rules on built traces: refunds, failures, coins that are paid out."""

from __future__ import annotations

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import jetton, stonfi

OWNER, ROUTER, POOL = account("owner"), account("router"), account("pool")
COIN, OTHER = account("coin"), account("other coin")
WALLET, ROUTER_COIN, ROUTER_OTHER, OTHER_WALLET = (
    account(name) for name in ("wallet", "router coin", "router other", "other wallet")
)
REFUND_CODE = 0x5FFE1295


def pay(step: Step, code: int) -> Step:
    """Let the pool tell the router to pay."""
    body = Cell(stonfi.PAY_TO).uint(1, 64).address(OWNER).address(OWNER).address(OWNER)
    return step.send(ROUTER, body.uint(code, 32))


def start(scene: Scene, opcode: int) -> Step:
    """Let jettons come to the router; return the pool."""
    scene.know_wallet(WALLET, OWNER, COIN)
    scene.know_wallet(ROUTER_COIN, ROUTER, COIN)
    scene.know_wallet(ROUTER_OTHER, ROUTER, OTHER)
    taken = scene.external(OWNER).send_jettons(WALLET, ROUTER, ROUTER_COIN, 100)
    return taken.send(ROUTER, opcode=jetton.NOTIFY).send(POOL, opcode=opcode)


@pytest.mark.parametrize(
    ("code", "wallet", "success"),
    [
        (stonfi.OK_CODE, ROUTER_OTHER, True),
        (REFUND_CODE, ROUTER_COIN, False),
    ],
)
def test_swap_or_refund(code: int, wallet: str, *, success: bool) -> None:
    scene = Scene()
    paying = pay(start(scene, stonfi.SWAP), code)
    paying.send_jettons(wallet, OWNER, OTHER_WALLET, 90)
    action = scene.find("jetton_swap")
    assert action.success is success
    data = action.columns["jetton_swap_data"]
    assert (data["dex"], data["peer_swaps"]) == ("stonfi_v2", [])
    assert data["dex_outgoing_transfer"]["source_jetton_wallet"] == wallet
    assert action.columns["asset2"] == (OTHER if success else COIN)


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
def test_swap_in_two_hops_knows_the_wallets_that_pay(*, is_known: bool) -> None:
    """Else the trace is broken, and the second hop a swap of its own."""
    scene = Scene()
    second, second_pool = account("second router"), account("second pool")
    to, last = account("wallet of second"), account("last")
    scene.know_wallet(last, second, account("third coin"))
    taken = pay(start(scene, stonfi.SWAP), stonfi.OK_CODE)
    taken = taken.send_jettons(ROUTER_OTHER, second, to, 90).send(second, opcode=jetton.NOTIFY)
    body = Cell(stonfi.PAY_TO).uint(1, 64).address(OWNER).address(OWNER).address(OWNER)
    paid = taken.send(second_pool, opcode=stonfi.SWAP).send(second, body.uint(stonfi.OK_CODE, 32))
    paid.send_jettons(last, OWNER, OTHER_WALLET, 80)
    if not is_known:
        del scene.facts[ROUTER_OTHER]
    data = scene.find("jetton_swap").columns["jetton_swap_data"]
    assert data["dex_outgoing_transfer"]["amount"] == 80
    assert data["dex_incoming_transfer"]["amount"] == (100 if is_known else 90)
    assert scene.state() == ("ok" if is_known else "broken")


def test_coins_are_paid_out_through_their_wallet() -> None:
    scene = Scene()
    pton = account("router pton")
    scene.know_wallet(pton, ROUTER, min(jetton.PTON_MASTERS))
    paying = pay(start(scene, stonfi.SWAP), stonfi.OK_CODE)
    sent = Cell(jetton.TRANSFER).uint(1, 64).coins(80).address(OWNER).address(OWNER)
    asked = paying.send(pton, sent.uint(0, 1).coins(0).uint(0, 1))
    asked.send(OWNER, Cell(jetton.PTON_TRANSFER).uint(1, 64).coins(80).address(OWNER))
    action = scene.find("jetton_swap")
    assert action.success
    assert action.columns["asset2"] is None
    outgoing = action.columns["jetton_swap_data"]["dex_outgoing_transfer"]
    assert (outgoing["amount"], outgoing["destination"]) == (80, OWNER)


@pytest.mark.parametrize("code", [stonfi.OK_CODE, REFUND_CODE])
def test_first_version_leaves_the_referrer_out(code: int) -> None:
    scene = Scene()
    swapping = start(scene, stonfi.SWAP_V1)
    for part, amount in ((stonfi.REFERRAL_CODE, 1), (code, 95)):
        body = Cell(stonfi.PAYMENT_V1).uint(1, 64).address(OWNER).uint(part, 32)
        swapping.send(ROUTER, body).send_jettons(ROUTER_OTHER, OWNER, OTHER_WALLET, amount)
    action = scene.find("jetton_swap")
    assert action.success is (code == stonfi.OK_CODE)
    assert action.columns["jetton_swap_data"]["dex_outgoing_transfer"]["amount"] == 95
    assert [each.type for each in scene.classify()].count("jetton_transfer") == 1


@pytest.mark.parametrize(
    ("is_known", "asset"), [(True, OTHER), (False, None)], ids=["known", "unknown"]
)
def test_refund_of_first_version_shows_the_requested_jetton(
    asset: str | None, *, is_known: bool
) -> None:
    """The outgoing transfer shows what was paid; the jetton of an unknown wallet is not known."""
    scene = Scene()
    scene.know_wallet(WALLET, OWNER, COIN)
    scene.know_wallet(ROUTER_COIN, ROUTER, COIN)
    scene.know_wallet(OTHER_WALLET, OWNER, COIN)
    if is_known:
        scene.know_wallet(ROUTER_OTHER, ROUTER, OTHER)
    taken = scene.external(OWNER).send_jettons(
        WALLET,
        ROUTER,
        ROUTER_COIN,
        100,
        lambda cell: cell.uint(stonfi.SWAP_V1, 32).address(ROUTER_OTHER).coins(50).address(OWNER),
    )
    swapping = taken.send(ROUTER, opcode=jetton.NOTIFY).send(POOL, opcode=stonfi.SWAP_V1)
    body = Cell(stonfi.PAYMENT_V1).uint(1, 64).address(OWNER).uint(REFUND_CODE, 32)
    swapping.send(ROUTER, body).send_jettons(ROUTER_COIN, OWNER, OTHER_WALLET, 100)
    action = scene.find("jetton_swap")
    assert not action.success
    assert action.columns["destination_secondary"] == ROUTER_OTHER
    assert action.columns["asset2"] == asset
    outgoing = action.columns["jetton_swap_data"]["dex_outgoing_transfer"]
    assert (outgoing["asset"], outgoing["source_jetton_wallet"]) == (COIN, ROUTER_COIN)
