"""Subscription rules on built traces."""

from __future__ import annotations

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.protocol import subscription

WALLET, PLUGIN, SHOP = account("wallet"), account("plugin"), account("shop")


@pytest.mark.parametrize("asked", [True, False])
def test_payment(*, asked: bool) -> None:
    scene = Scene()
    if asked:
        request = Cell(subscription.PAYMENT_REQUEST).uint(1, 64).coins(50)
        step = scene.external(PLUGIN).send(WALLET, request)
    else:
        step = scene.external(WALLET)
    confirmed = step.send(PLUGIN, opcode=subscription.PAYMENT_CONFIRMED)
    confirmed.send(SHOP, opcode=subscription.PAYMENT)
    action = scene.find("subscribe")
    assert action.columns == {
        "source": WALLET,
        "destination": SHOP,
        "destination_secondary": PLUGIN,
        "amount": 50 if asked else 1_000_000_000,
    }


@pytest.mark.parametrize("told", [True, False])
def test_removal(*, told: bool) -> None:
    scene = Scene()
    removed = scene.external(WALLET).send(PLUGIN, opcode=subscription.DESTRUCT)
    if told:
        removed.send(SHOP, opcode=subscription.DESTRUCT)
    else:
        removed.abort()
    action = scene.find("unsubscribe")
    assert action.success
    assert action.columns["destination"] == (SHOP if told else None)
    assert action.columns["destination_secondary"] == PLUGIN
