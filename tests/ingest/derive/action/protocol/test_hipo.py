"""Hipo: deposits and withdrawals of stakes, at once and at the end of a round."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import hipo, jetton, nft
from tonlake.ingest.derive.action.row import ActionRow

OWNER, WALLET, MASTER, BILL = map(account, ("owner", "hGRAM wallet", "hGRAM", "bill"))


def write(opcode: int) -> Cell:
    return Cell(opcode).uint(1, 64)


def mint_bill(treasury: Step, amount: int) -> None:
    body = write(hipo.MINT_BILL).coins(amount).uint(0, 1).address(OWNER).address(MASTER).coins(0)
    collection = treasury.send(account("bills"), body)
    collection.send(BILL, opcode=hipo.ASSIGN_BILL)


def check(
    action: ActionRow,
    amount: int | None,
    *,
    asset: str = MASTER,
    wallet: str | None = WALLET,
    **staking: object,
) -> None:
    """Compare an action of the owner with its parties, its amount, and what it staked."""
    columns = action.columns
    assert (columns["source"], columns["destination"]) == (OWNER, hipo.TREASURY)
    assert (columns["asset"], columns["source_secondary"]) == (asset, wallet)
    assert columns["amount"] == amount
    assert columns["staking_data"] == {"provider": "hipo", "ts_nft": None} | staking


def deposit(scene: Scene) -> Step:
    body = write(hipo.DEPOSIT).address(None).coins(10).coins(0).address(None)
    return scene.external(OWNER).send(hipo.TREASURY, body, value=11)


def test_tokens_are_minted_at_once(scene: Scene) -> None:
    proxy = write(hipo.PROXY_MINTED).coins(9).coins(10).address(OWNER).uint(0, 32)
    deposit(scene).send(MASTER, proxy).send(WALLET, opcode=hipo.MINTED).send(
        OWNER, opcode=jetton.NOTIFY
    )
    action = scene.find("stake_deposit")
    check(action, 10, tokens_minted=9)
    assert action.success


def test_a_deposit_waits_for_the_round(scene: Scene) -> None:
    treasury = deposit(scene)
    saved = write(hipo.PROXY_SAVED).coins(8).address(OWNER).uint(0, 32)
    treasury.send(MASTER, saved).send(WALLET, opcode=hipo.SAVED)
    mint_bill(treasury, 8)
    check(scene.find("stake_deposit"), 8, tokens_minted=None, ts_nft=BILL)


@pytest.mark.parametrize(("comment", "kind"), [("d", "stake_deposit"), ("x", "ton_transfer")])
def test_a_comment_asks_for_a_deposit(scene: Scene, comment: str, kind: str) -> None:
    scene.external(OWNER).send(hipo.TREASURY, Cell(0).text(comment), value=5)
    action = scene.find(kind)
    if kind == "stake_deposit":
        check(action, 5, asset=hipo.PARENT, wallet=None, tokens_minted=None)
        assert not action.success


def burn(scene: Scene) -> Step:
    scene.know_wallet(WALLET, OWNER, MASTER)
    body = write(jetton.BURN).coins(7).address(OWNER).uint(0, 1)
    reserve = write(hipo.RESERVE).coins(7).address(OWNER).uint(0, 4).coins(0)
    proxy = scene.external(OWNER).send(WALLET, body).send(MASTER, opcode=hipo.PROXY_RESERVE)
    return proxy.send(hipo.TREASURY, reserve)


def test_tokens_are_paid_out_at_once(scene: Scene) -> None:
    paid = write(hipo.PROXY_BURNED).coins(7).coins(6).address(OWNER)
    burn(scene).send(MASTER, paid).send(WALLET, opcode=hipo.BURNED).send(
        OWNER, opcode=hipo.WITHDRAWN
    )
    check(scene.find("stake_withdrawal"), 6, tokens_burnt=7)


def test_a_withdrawal_waits_for_the_round(scene: Scene) -> None:
    mint_bill(burn(scene), 7)
    check(scene.find("stake_withdrawal_request"), 7, tokens_burnt=7, ts_nft=BILL)


def test_a_withdrawal_that_is_rolled_back_is_a_burn(scene: Scene) -> None:
    returned = write(hipo.PROXY_ROLLBACK).coins(7).address(OWNER)
    burn(scene).send(MASTER, returned).send(WALLET, opcode=hipo.ROLLBACK)
    action = scene.find("jetton_burn")
    assert (action.columns["source"], action.columns["amount"]) == (OWNER, 7)
    types = {each.type for each in scene.classify()}
    assert not types & {"stake_withdrawal", "stake_withdrawal_request"}


def end_round(scene: Scene, opcode: int) -> Step:
    """Burn a bill and return the treasury."""
    burnt = scene.external(account("keeper")).send(BILL, opcode=hipo.BURN_BILL)
    body = write(opcode).coins(10).address(OWNER).address(MASTER).uint(0, 32)
    return burnt.send(account("bills"), opcode=hipo.BILL_BURNED).send(hipo.TREASURY, body)


def test_a_round_ends_with_tokens(scene: Scene) -> None:
    minted = write(hipo.PROXY_MINTED).coins(9).coins(10).address(OWNER).uint(0, 32)
    end_round(scene, hipo.MINT_TOKENS).send(MASTER, minted).send(WALLET, opcode=hipo.MINTED)
    check(scene.find("stake_deposit"), 10, tokens_minted=9, ts_nft=BILL)


def test_a_round_ends_with_coins(scene: Scene) -> None:
    paid = write(hipo.PROXY_BURNED).coins(10).coins(11).address(OWNER)
    end_round(scene, hipo.BURN_TOKENS).send(MASTER, paid).send(WALLET, opcode=hipo.BURNED)
    action = scene.find("stake_withdrawal")
    check(action, 11, tokens_burnt=10, ts_nft=BILL)
    assert action.success


def test_a_round_puts_a_withdrawal_off(scene: Scene) -> None:
    mint_bill(end_round(scene, hipo.BURN_TOKENS), 10)
    action = scene.find("stake_withdrawal_request")
    check(action, 10, wallet=None, tokens_burnt=10, ts_nft=BILL)


def test_a_round_takes_a_withdrawal_back(scene: Scene) -> None:
    returned = write(hipo.PROXY_ROLLBACK).coins(10).address(OWNER)
    end_round(scene, hipo.BURN_TOKENS).send(MASTER, returned).send(WALLET, opcode=hipo.ROLLBACK)
    action = scene.find("stake_withdrawal")
    check(action, None, tokens_burnt=10, ts_nft=BILL)
    assert not action.success


def test_a_bill_that_is_minted_names_itself(scene: Scene) -> None:
    scene.know(BILL, "NftItem", index=1, collection_address=account("bills"), owner_address=OWNER)
    treasury = burn(scene)
    body = write(hipo.MINT_BILL).coins(7).uint(0, 1).address(OWNER).address(MASTER).coins(0)
    treasury.send(account("bills"), body).send(BILL, opcode=nft.OWNERSHIP_ASSIGNED).deploy()
    assert scene.find("stake_withdrawal_request").columns["staking_data"]["ts_nft"] == BILL
    assert scene.find("nft_mint").columns["destination"] == BILL
