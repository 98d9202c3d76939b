"""Rules of sales and auctions on built traces."""

from __future__ import annotations

import pytest

from tests.ingest.derive.action.protocol.test_nft import (
    BUYER,
    COLLECTION,
    ITEM,
    MARKET,
    OWNER,
    SALE,
    know_item,
    move_item,
)
from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.protocol import auction, sale
from tonlake.ingest.derive.action.protocol.trade import (
    CANCEL_AUCTION,
    CLOSE_AUCTION,
    DNS_COLLECTION,
    FINISH_AUCTION,
    OUTBID,
)

DEPLOYER, RIVAL = account("deployer"), account("rival")


def know_auction(scene: Scene) -> None:
    """Say that the sale contract is an auction of the item."""
    know_item(scene)
    scene.know(
        SALE, "NftAuction", mp_addr=MARKET, nft_addr=ITEM, nft_owner=OWNER, last_bid=700, max_bid=9
    )


def comment(text: str) -> Cell:
    """Return the body of a transfer with a comment."""
    return Cell(0).text(text)


@pytest.mark.parametrize("kind", ["sale", "auction"])
def test_listing(kind: str) -> None:
    scene = Scene()
    if kind == "auction":
        know_auction(scene)
    else:
        know_item(scene)
        scene.know(SALE, "NftSale", full_price=1000, marketplace_fee=50, royalty_amount=20)
    moved = move_item(scene.external(OWNER), DEPLOYER)
    deployer = scene.steps[-1]
    deployer.send(SALE, opcode=1).deploy()
    move_item(deployer, SALE, DEPLOYER)
    assert moved.address == ITEM
    action = scene.find(f"nft_put_on_{kind}")
    columns = action.columns
    assert (columns["source"], columns["source_secondary"]) == (OWNER, DEPLOYER)
    assert (columns["destination"], columns["asset"]) == (SALE, COLLECTION)
    listing = columns["nft_listing_data"]
    assert listing["nft_item_index"] == 7
    assert listing.get("full_price") == (1000 if kind == "sale" else None)
    assert listing.get("max_bid") == (9 if kind == "auction" else None)


def test_item_sent_on_to_no_sale_is_no_listing() -> None:
    scene = Scene()
    know_item(scene)
    move_item(scene.external(OWNER), DEPLOYER)
    deployer = scene.steps[-1]
    deployer.send(SALE, opcode=1)
    move_item(deployer, SALE, DEPLOYER)
    assert [each.type for each in scene.classify() if "put_on" in each.type] == []


@pytest.mark.parametrize("aborted", [False, True])
def test_update(*, aborted: bool) -> None:
    scene = Scene()
    scene.know(SALE, "NftSale", nft_address=ITEM, marketplace_address=MARKET)
    body = Cell(sale.UPDATE_SALE).uint(1, 64).coins(1000).coins(50).coins(20)
    step = scene.external(OWNER).send(SALE, body)
    if aborted:
        step.abort()
    action = scene.find("nft_update_sale")
    assert action.success is not aborted
    assert action.columns["nft_listing_data"] == {
        "full_price": 1000,
        "marketplace_fee": 50,
        "royalty_amount": 20,
    }
    assert ITEM in action.accounts


def test_cancelled_sale() -> None:
    scene = Scene()
    know_item(scene)
    scene.know(
        SALE, "NftSale", nft_address=ITEM, nft_owner_address=OWNER, marketplace_address=MARKET
    )
    move_item(scene.external(OWNER).send(SALE, opcode=sale.CANCEL_SALE), OWNER, SALE)
    columns = scene.find("nft_cancel_sale").columns
    assert (columns["source"], columns["destination"]) == (OWNER, SALE)
    assert columns["nft_transfer_data"]["marketplace_address"] == MARKET


def test_bid_and_refund() -> None:
    scene = Scene()
    know_auction(scene)
    bid = scene.external(BUYER).send(SALE, value=800)
    bid.send(RIVAL, comment("Your bid has been outbid by another user."), value=690)
    columns = scene.find("auction_bid").columns
    assert (columns["source"], columns["destination"], columns["value"]) == (BUYER, SALE, 800)
    assert columns["asset_secondary"] == ITEM
    refund = scene.find("auction_outbid").columns
    assert (refund["source"], refund["destination"]) == (SALE, RIVAL)
    assert (refund["source_secondary"], refund["amount"]) == (BUYER, 690)


@pytest.mark.parametrize(
    ("collection", "content", "owner"),
    [
        (DNS_COLLECTION, {"domain": "x.ton"}, None),
        (COLLECTION, {"uri": "https://nft.fragment.com/number/8.json"}, OWNER),
    ],
)
def test_bid_for_an_item_that_is_its_own_auction(
    collection: str, content: dict[str, str], owner: str | None
) -> None:
    scene = Scene()
    scene.know(
        ITEM,
        "NftItem",
        index=7,
        collection_address=collection,
        owner_address=owner,
        content=content,
    )
    scene.external(BUYER).send(ITEM).send(RIVAL, Cell(OUTBID).uint(1, 64), value=5)
    assert scene.find("auction_bid").columns["asset"] == collection
    assert scene.find("auction_outbid").columns["destination"] == RIVAL


def test_coins_for_an_owned_domain_are_no_bid() -> None:
    scene = Scene()
    scene.know(ITEM, "NftItem", index=7, collection_address=DNS_COLLECTION, owner_address=OWNER)
    scene.external(BUYER).send(ITEM)
    assert scene.find("ton_transfer").columns["destination"] == ITEM


@pytest.mark.parametrize("trigger", [comment("finish"), Cell(FINISH_AUCTION), Cell(CLOSE_AUCTION)])
def test_end_with_a_purchase(trigger: Cell) -> None:
    scene = Scene()
    know_auction(scene)
    ended = scene.external(RIVAL).send(SALE, trigger)
    ended.send(OWNER, value=650)
    move_item(ended, BUYER, SALE)
    columns = scene.find("nft_finish_auction").columns
    assert (columns["source"], columns["destination"]) == (BUYER, SALE)
    assert scene.find("nft_purchase").parent_action_id is None


@pytest.mark.parametrize(
    ("trigger", "new_owner", "kind"),
    [
        (comment("cancel"), OWNER, "nft_cancel_auction"),
        (Cell(CANCEL_AUCTION), OWNER, "nft_cancel_auction"),
        (comment("stop"), BUYER, "nft_finish_auction"),
    ],
)
def test_end_without_a_payment(trigger: Cell, new_owner: str, kind: str) -> None:
    scene = Scene()
    know_auction(scene)
    move_item(scene.external(OWNER).send(SALE, trigger), new_owner, SALE)
    columns = scene.find(kind).columns
    assert (columns["asset_secondary"], columns["destination"]) == (ITEM, SALE)


@pytest.mark.parametrize("aborted", [False, True])
def test_telegram_auction_begins(*, aborted: bool) -> None:
    scene = Scene()
    know_item(scene, content={"uri": "https://nft.fragment.com/number/8.json"})
    body = Cell(auction.START_TELEGRAM).uint(1, 64)
    body.ref(body.child().address(OWNER).coins(5).coins(99).uint(5, 8).uint(60, 32).uint(9, 32))
    step = scene.external(OWNER).send(ITEM, body)
    if aborted:
        step.abort()
    else:
        step.send(OWNER, Cell(auction.TELEGRAM_OK).uint(1, 64))
    action = scene.find("teleitem_start_auction")
    assert action.success is not aborted
    assert action.columns["nft_listing_data"] == {
        "nft_item_index": 7,
        "mp_fee_factor": 0,
        "mp_fee_base": 0,
        "royalty_fee_base": 0,
        "marketplace": "fragment",
        "marketplace_fee_address": OWNER,
        "min_bid": 5,
        "max_bid": 99,
    }


def test_telegram_auction_is_cancelled() -> None:
    scene = Scene()
    know_item(scene, content={"uri": "https://nft.fragment.com/number/8.json"})
    scene.external(OWNER).send(ITEM, Cell(auction.CANCEL_TELEGRAM).uint(1, 64))
    columns = scene.find("teleitem_cancel_auction").columns
    assert (columns["source"], columns["destination"]) == (OWNER, ITEM)
