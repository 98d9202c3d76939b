"""Nominator pool rules on built traces."""

from __future__ import annotations

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import nominator

NOMINATOR, POOL = account("nominator"), account("pool", -1)


def ask(scene: Scene, comment: str, value: int) -> Step:
    """Send coins with a comment to the pool."""
    scene.know(POOL, nominator.INTERFACE)
    return scene.external(NOMINATOR).send(POOL, Cell(0).text(comment), value=value)


def test_deposit() -> None:
    scene = Scene()
    ask(scene, "d", 10_000)
    action = scene.find("stake_deposit")
    assert action.columns == {
        "source": NOMINATOR,
        "destination": POOL,
        "amount": 10_000,
        "staking_data": {"provider": "nominator"},
    }


def test_withdrawal_now_or_later() -> None:
    scene = Scene()
    ask(scene, "w", 1)
    later = scene.find("stake_withdrawal_request")
    assert later.columns["amount"] is None
    scene = Scene()
    ask(scene, "w", 1).send(NOMINATOR, value=12_000)
    now = scene.find("stake_withdrawal")
    assert (now.columns["source"], now.columns["amount"]) == (NOMINATOR, 12_000)


def test_of_two_transfers_back_the_earlier_is_the_payout() -> None:
    scene = Scene()
    asked = ask(scene, "w", 100)
    asked.send(NOMINATOR, value=90)
    asked.send(NOMINATOR, value=5)
    (now,) = scene.classify()
    assert (now.type, now.columns["amount"]) == ("stake_withdrawal", 90)


def test_what_was_not_needed_is_no_payout() -> None:
    scene = Scene()
    ask(scene, "w", 100).send(NOMINATOR, value=90)
    (later,) = scene.classify()
    assert (later.type, later.columns["amount"]) == ("stake_withdrawal_request", None)


def test_late_payout() -> None:
    scene = Scene()
    scene.know(POOL, nominator.INTERFACE)
    anyone = account("anyone")
    asked = scene.external(anyone).send(POOL, opcode=nominator.PROCESS_REQUESTS)
    asked.send(NOMINATOR, value=12_000)
    action = scene.find("stake_withdrawal")
    assert (action.columns["source"], action.columns["destination"]) == (NOMINATOR, POOL)


def test_the_same_words_to_anybody_else_are_a_transfer() -> None:
    scene = Scene()
    scene.external(NOMINATOR).send(POOL, Cell(0).text("d"))
    assert [action.type for action in scene.classify()] == ["ton_transfer"]
