"""NFT rules on built traces."""

import pytest

from tests.ingest.derive.action.scene import Cell, Scene, Step, account
from tonlake.ingest.derive.action.protocol import nft
from tonlake.ingest.derive.action.protocol.nft import FILL_UP

OWNER, BUYER, ITEM, COLLECTION = (account(name) for name in ("owner", "buyer", "item", "all"))
SALE, MARKET = account("sale"), account("market")


def know_item(scene: Scene, owner: str | None = OWNER, **fields: object) -> None:
    """Declare the item part of the collection."""
    scene.know(
        ITEM, "NftItem", index=7, collection_address=COLLECTION, owner_address=owner, **fields
    )


def transfer_body(new_owner: str) -> Cell:
    """Return the body of a transfer without payloads."""
    body = Cell(nft.TRANSFER).uint(9, 64).address(new_owner).address(OWNER)
    return body.uint(0, 1).coins(5).uint(0, 1)


def assigned_body(prev_owner: str, bid: int | None = None) -> Cell:
    """Return the body of the notice to a new owner, with the last bid at the end of an auction."""
    body = Cell(nft.OWNERSHIP_ASSIGNED).uint(9, 64).address(prev_owner).uint(0, 1)
    return body if bid is None else body.uint(nft.BID_INFO, 32).coins(bid).uint(1, 32)


def move_item(step: Step, new_owner: str, prev_owner: str = OWNER) -> Step:
    """Transfer the item, with a notice to its new owner; return the item's step."""
    moved = step.send(ITEM, transfer_body(new_owner))
    moved.send(new_owner, assigned_body(prev_owner))
    return moved


def test_mint(scene: Scene) -> None:
    know_item(scene)
    scene.external(OWNER).send(COLLECTION, opcode=1).send(ITEM, opcode=0x299A3E15).deploy()
    columns = scene.find("nft_mint").columns
    assert (columns["source"], columns["asset"]) == (COLLECTION, COLLECTION)
    assert columns["asset_secondary"] == ITEM
    assert columns["opcode"] == 0x299A3E15
    assert columns["nft_mint_data"] == {"nft_item_index": 7}
    assert len([each for each in scene.classify() if each.type == "contract_deploy"]) == 1


def test_transfer(scene: Scene) -> None:
    know_item(scene)
    move_item(scene.external(OWNER), BUYER)
    action = scene.find("nft_transfer")
    assert (action.columns["source"], action.columns["destination"]) == (OWNER, BUYER)
    data = action.columns["nft_transfer_data"]
    assert (data["is_purchase"], data["query_id"], data["nft_item_index"]) == (False, 9, 7)
    assert data["forward_amount"] == 5


def test_transfer_that_the_item_refused(scene: Scene) -> None:
    know_item(scene)
    scene.external(BUYER).send(ITEM, transfer_body(BUYER)).abort()
    action = scene.find("nft_transfer")
    assert not action.success
    assert action.columns["source"] == BUYER


def test_item_of_which_nothing_is_known_stays_a_call(scene: Scene) -> None:
    move_item(scene.external(OWNER), BUYER)
    assert {action.type for action in scene.classify()} == {"call_contract"}


@pytest.mark.parametrize("is_paid", [True, False])
def test_purchase(scene: Scene, *, is_paid: bool) -> None:
    know_item(scene, BUYER)
    scene.know(
        SALE,
        "NftSale",
        nft_address=ITEM,
        nft_owner_address=OWNER,
        marketplace_address=MARKET,
        full_price=1000,
    )
    paid = scene.external(BUYER).send(SALE, value=1200)
    if is_paid:
        paid.send(OWNER, value=950)
    paid.send(MARKET, value=50)
    move_item(paid, BUYER, SALE)
    types = [action.type for action in scene.classify() if action.parent_action_id is None]
    assert ("nft_purchase" in types) is is_paid
    moved = scene.find("nft_transfer")
    assert moved.columns["nft_transfer_data"]["price"] == 1000
    assert moved.columns["nft_transfer_data"]["real_prev_owner"] == OWNER
    if is_paid:
        data = scene.find("nft_purchase").columns["nft_transfer_data"]
        assert data["payout_amount"] == 950
        assert data["marketplace_address"] == MARKET
        assert moved.ancestor_type == ["nft_purchase"]


def test_end_of_an_auction_on_telegram(scene: Scene) -> None:
    know_item(scene, content={"uri": "https://nft.fragment.com/username/x.json"})
    bid = scene.external(BUYER).send(ITEM, value=10_000)
    bid.send(MARKET, Cell(FILL_UP).uint(1, 64), value=500)
    bid.send(OWNER, Cell(FILL_UP).uint(1, 64), value=9_000)
    bid.send(BUYER, assigned_body(OWNER, bid=9_900))
    action = scene.find("nft_transfer")
    data = action.columns["nft_transfer_data"]
    assert (data["is_purchase"], data["price"]) == (True, 9_900)
    assert (data["payout_amount"], data["royalty_amount"]) == (9_000, 500)
    listing = action.columns["nft_listing_data"]
    assert (listing["marketplace_fee_address"], listing["royalty_address"]) == (OWNER, MARKET)


def test_notice_without_a_bid_is_not_a_purchase(scene: Scene) -> None:
    know_item(scene)
    scene.external(BUYER).send(ITEM).send(BUYER, assigned_body(OWNER))
    data = scene.find("nft_transfer").columns["nft_transfer_data"]
    assert (data["is_purchase"], data["real_prev_owner"]) == (False, OWNER)


def test_discovery(scene: Scene) -> None:
    asked = scene.external(OWNER).send(ITEM, Cell(nft.GET_STATIC_DATA).uint(3, 64))
    asked.send(OWNER, Cell(nft.REPORT_STATIC_DATA).uint(3, 64).uint(7, 256).address(COLLECTION))
    columns = scene.find("nft_discovery").columns
    assert (columns["source"], columns["asset"]) == (OWNER, COLLECTION)
    assert columns["nft_transfer_data"] == {"nft_item_index": 7}
