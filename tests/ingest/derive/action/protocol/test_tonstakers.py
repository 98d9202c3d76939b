"""Tonstakers rules on built traces, for cases without recordings."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.protocol import jetton, tonstakers

OWNER, POOL, MASTER, WALLET = (account(name) for name in ("owner", "pool", "tsTON", "wallet"))
SECOND_ITEM, THIRD = account("second item"), account("third")
ITEM, PAYOUTS = account("item"), account("payouts")


def test_deposit_without_jettons_failed(scene: Scene) -> None:
    scene.external(OWNER).send(POOL, Cell(tonstakers.DEPOSIT).uint(1, 64), value=3_000_000_000)
    action = scene.find("stake_deposit")
    assert not action.success
    assert action.columns["amount"] == 2_000_000_000
    assert action.columns["asset"] is None


def test_request_names_the_item_of_the_payout(scene: Scene) -> None:
    scene.know_wallet(WALLET, OWNER, MASTER)
    burn = Cell(jetton.BURN).uint(1, 64).coins(500)
    burnt = scene.external(OWNER).send(WALLET, burn).send(MASTER, opcode=jetton.BURN_NOTIFICATION)
    asked = burnt.send(POOL, opcode=tonstakers.WITHDRAW_REQUEST)
    asked.send(PAYOUTS, opcode=tonstakers.MINT_JETTONS).send(ITEM, opcode=0x12345678).deploy()
    action = scene.find("stake_withdrawal_request")
    assert action.columns == {
        "source": OWNER,
        "source_secondary": WALLET,
        "destination": POOL,
        "asset": MASTER,
        "amount": 500,
        "staking_data": {"provider": "liquid_staking", "ts_nft": ITEM},
    }


@pytest.mark.parametrize("ordered", [True, False])
def test_payouts_at_the_end_of_a_round(scene: Scene, *, ordered: bool) -> None:
    """Items are burnt one after the other; the pool ordered it, or is unknown."""
    first = scene.external(POOL)
    first = first.send(PAYOUTS, opcode=tonstakers.START_PAYOUTS if ordered else 0x12345678)
    for item, owner, tokens, value in ((ITEM, OWNER, 600, 700), (SECOND_ITEM, THIRD, 60, 70)):
        body = Cell(tonstakers.NFT_BURNT).uint(1, 64).coins(tokens).address(owner)
        first = first.send(item, opcode=tonstakers.NFT_BURN).send(PAYOUTS, body)
        first.send(owner, opcode=tonstakers.NFT_PAYOUT, value=value)
    actions = [each for each in scene.classify() if each.type == "stake_withdrawal"]
    assert [each.columns for each in actions] == [
        {
            "source": owner,
            "destination": POOL if ordered else None,
            "amount": value,
            "staking_data": {
                "provider": tonstakers.PROVIDER,
                "ts_nft": item,
                "tokens_burnt": tokens,
            },
        }
        for item, owner, tokens, value in ((ITEM, OWNER, 600, 700), (SECOND_ITEM, THIRD, 60, 70))
    ]
