"""Extensions that are added to wallets of version 5, and removed."""

from __future__ import annotations

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.protocol.wallet_extension import SIGNED

WALLET, EXTENSION = account("wallet"), account("extension")


def change(kind: int, *, opcode: int = SIGNED) -> Scene:
    """Return the scene of a request with one extended action."""
    scene = Scene()
    step = scene.external(WALLET)
    assert step.message is not None
    body = Cell(opcode).uint(2147483645, 32).uint(1776948067, 32).uint(33, 32)
    body.uint(0, 1).uint(1, 1).uint(kind, 8).address(EXTENSION).uint(5, 512)
    step.message.boc = body.boc()
    step.message.opcode = opcode
    return scene


@pytest.mark.parametrize(
    ("kind", "name"), [(2, "wallet_v5_add_extension"), (3, "wallet_v5_remove_extension")]
)
def test_an_extension_is_added_or_removed(kind: int, name: str) -> None:
    action = change(kind).find(name)
    assert action.success
    assert (action.columns["source"], action.columns["destination"]) == (WALLET, EXTENSION)
    assert action.accounts == sorted((WALLET, EXTENSION))
    assert len(action.tx_hashes) == 1
    assert action.columns["wallet_v5_extension_data"] == {
        "wallet_id": 2147483645,
        "valid_until": 1776948067,
        "seqno": 33,
        "signature_allowed": None,
    }


def test_the_compute_phase_decides() -> None:
    scene = change(2)
    scene.steps[0].exit_code = 139
    assert not scene.find("wallet_v5_add_extension").success


@pytest.mark.parametrize(("kind", "opcode"), [(4, SIGNED), (2, 0x6578746E)])
def test_other_requests(kind: int, opcode: int) -> None:
    assert [action.type for action in change(kind, opcode=opcode).classify()] == ["unknown"]
