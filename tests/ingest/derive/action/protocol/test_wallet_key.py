"""Telegram wallets that get another key."""

from __future__ import annotations

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, account
from tests.ingest.derive.action.test_request import write_head
from tonlake.ingest.derive.action import request
from tonlake.ingest.derive.action.row import EXTRA, PARENT_GASLESS

WALLET, RELAYER = account("wallet"), account("relayer")


def write_change(opcode: int) -> Cell:
    """Write a request for another key."""
    body = write_head(opcode).uint(0xAB, 256)
    body.ref(body.child().uint(0xCD, 512))
    return body.ref(body.child().uint(0xEF, 256))


def change(opcode: int) -> Scene:
    """Return the scene of a request from outside."""
    scene = Scene()
    step = scene.external(WALLET)
    assert step.message is not None
    boc = write_change(opcode).boc()
    step.message.boc = boc
    return scene


def test_a_key_is_changed_from_outside() -> None:
    action = change(request.CHANGE_KEY_EXTERNAL).find("change_wallet_key")
    assert action.success
    assert (action.columns["source"], action.columns["destination"]) == (None, WALLET)
    assert action.columns["value"] is None
    assert action.accounts == [WALLET]
    assert action.columns[EXTRA] == {
        "new_public_key": f"{0xAB:064x}",
        "rotation_signature": f"{0xCD:0128x}",
        "encrypted_old_private_key": f"{0xEF:064x}",
    }


def test_a_key_is_changed_by_a_request_that_others_pay_for() -> None:
    scene = Scene()
    scene.external(RELAYER).send(WALLET, write_change(request.CHANGE_KEY), value=5)
    actions = {action.type: action for action in scene.classify()}
    assert actions.keys() == {"change_wallet_key", "gasless_request"}
    changed = actions["change_wallet_key"].columns
    assert (changed["source"], changed["destination"], changed["value"]) == (RELAYER, WALLET, 5)
    assert changed[EXTRA][PARENT_GASLESS]


@pytest.mark.parametrize("exit_code", [33, None])
def test_a_refused_change_is_none(exit_code: int | None) -> None:
    scene = change(request.CHANGE_KEY_EXTERNAL)
    scene.steps[0].abort()
    scene.steps[0].exit_code = exit_code
    assert [action.type for action in scene.classify()] == ["unknown"]


def test_the_form_inside_the_chain_is_none_from_outside() -> None:
    assert [action.type for action in change(request.CHANGE_KEY).classify()] == ["unknown"]


def test_a_torn_request_is_a_call() -> None:
    scene = Scene()
    scene.external(RELAYER).send(WALLET, write_head(request.CHANGE_KEY).uint(1, 256))
    assert {action.type for action in scene.classify()} == {"call_contract", "gasless_request"}
