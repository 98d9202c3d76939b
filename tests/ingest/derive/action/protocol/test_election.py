"""Election rules on built traces."""

from __future__ import annotations

import pytest

from tests.ingest.derive.action.scene import Scene, account
from tonlake.ingest.derive.action.protocol import election

VALIDATOR = account("validator", -1)


@pytest.mark.parametrize("taken", [True, False])
def test_stake(*, taken: bool) -> None:
    scene = Scene()
    sent = scene.external(VALIDATOR).send(election.ELECTOR, opcode=election.NEW_STAKE, value=77)
    if taken:
        sent.send(VALIDATOR, opcode=election.STAKE_ACCEPTED)
    action = scene.find("election_deposit")
    assert action.success is taken
    assert action.columns == {"source": VALIDATOR, "amount": 77}


@pytest.mark.parametrize("paid", [88, None])
def test_recovery(paid: int | None) -> None:
    scene = Scene()
    sent = scene.external(VALIDATOR).send(election.ELECTOR, opcode=election.RECOVER_STAKE)
    if paid is not None:
        sent.send(VALIDATOR, opcode=election.STAKE_RETURNED, value=paid)
    action = scene.find("election_recover")
    assert action.success is (paid is not None)
    assert action.columns == {"source": VALIDATOR, "amount": paid}


def test_another_account_is_no_elector() -> None:
    scene = Scene()
    scene.external(VALIDATOR).send(account("pool", -1), opcode=election.NEW_STAKE)
    assert [action.type for action in scene.classify()] == ["call_contract"]
