"""Rules for stakes on built traces: the elector, and nominator pools."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import validator

VALIDATOR = account("validator", -1)


@pytest.mark.parametrize("taken", [True, False])
def test_stake(scene: Scene, *, taken: bool) -> None:
    sent = scene.external(VALIDATOR).send(validator.ELECTOR, opcode=validator.NEW_STAKE, value=77)
    if taken:
        sent.send(VALIDATOR, opcode=validator.STAKE_ACCEPTED)
    action = scene.find("election_deposit")
    assert action.success is taken
    assert action.columns == {"source": VALIDATOR, "amount": 77}


@pytest.mark.parametrize("paid", [88, None])
def test_recovery(scene: Scene, paid: int | None) -> None:
    sent = scene.external(VALIDATOR).send(validator.ELECTOR, opcode=validator.RECOVER_STAKE)
    if paid is not None:
        sent.send(VALIDATOR, opcode=validator.STAKE_RETURNED, value=paid)
    action = scene.find("election_recover")
    assert action.success is (paid is not None)
    assert action.columns == {"source": VALIDATOR, "amount": paid}


def test_another_account_is_not_the_elector(scene: Scene) -> None:
    scene.external(VALIDATOR).send(account("pool", -1), opcode=validator.NEW_STAKE)
    assert [action.type for action in scene.classify()] == ["call_contract"]


NOMINATOR, POOL = account("nominator"), account("pool", -1)


def ask(scene: Scene, comment: str, value: int) -> Step:
    """Send coins with a comment to the pool."""
    scene.know(POOL, validator.INTERFACE)
    return scene.external(NOMINATOR).send(POOL, Cell(0).text(comment), value=value)


def test_deposit(scene: Scene) -> None:
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


def test_of_two_transfers_back_the_earlier_is_the_payout(scene: Scene) -> None:
    asked = ask(scene, "w", 100)
    asked.send(NOMINATOR, value=90)
    asked.send(NOMINATOR, value=5)
    (now,) = scene.classify()
    assert (now.type, now.columns["amount"]) == ("stake_withdrawal", 90)


def test_an_excess_is_not_a_payout(scene: Scene) -> None:
    ask(scene, "w", 100).send(NOMINATOR, value=90)
    (later,) = scene.classify()
    assert (later.type, later.columns["amount"]) == ("stake_withdrawal_request", None)


def test_late_payout(scene: Scene) -> None:
    scene.know(POOL, validator.INTERFACE)
    anyone = account("anyone")
    asked = scene.external(anyone).send(POOL, opcode=validator.PROCESS_REQUESTS)
    asked.send(NOMINATOR, value=12_000)
    action = scene.find("stake_withdrawal")
    assert (action.columns["source"], action.columns["destination"]) == (NOMINATOR, POOL)


def test_the_same_words_to_anybody_else_are_a_transfer(scene: Scene) -> None:
    scene.external(NOMINATOR).send(POOL, Cell(0).text("d"))
    assert [action.type for action in scene.classify()] == ["ton_transfer"]
