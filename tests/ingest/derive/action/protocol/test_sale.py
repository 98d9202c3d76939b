"""Rules of sales and auctions on built traces."""

import pytest
from pytoniq.contract.nft.nft_sale import NFT_SALE_CODE
from pytoniq_core import Address, begin_cell
from pytoniq_core import Cell as CoreCell
from pytoniq_core.tlb.custom.nft import NftItemSaleData, NftItemSaleFees

from tests.ingest.derive.action.protocol.test_nft import (
    BUYER,
    COLLECTION,
    ITEM,
    MARKET,
    OWNER,
    SALE,
    assigned_body,
    know_item,
    move_item,
    transfer_body,
)
from tests.ingest.derive.action.scene import Cell, Scene, account
from tonlake.ingest.derive.action.protocol import sale
from tonlake.ingest.derive.action.protocol.nft import (
    CANCEL_AUCTION,
    CLOSE_AUCTION,
    DNS_COLLECTION,
    FINISH_AUCTION,
    OUTBID,
)

DEPLOYER, RIVAL = account("deployer"), account("rival")


def know_auction(scene: Scene) -> None:
    """Declare the sale contract an auction of the item."""
    know_item(scene)
    scene.know(
        SALE, "NftAuction", mp_addr=MARKET, nft_addr=ITEM, nft_owner=OWNER, last_bid=700, max_bid=9
    )


def comment(text: str) -> Cell:
    """Return the body of a transfer with a comment."""
    return Cell(0).text(text)


def know_sale(scene: Scene, **fields: object) -> None:
    """Declare the sale contract a sale of the item with current terms, cheaper than deployed."""
    know_item(scene)
    now = {"nft_address": ITEM, "nft_owner_address": OWNER, "marketplace_address": MARKET}
    scene.know(SALE, "NftSale", **{**now, "full_price": 5, "marketplace_fee": 1, **fields})


def write_sale() -> CoreCell:
    """Return the data of a sale of the item for 1000, with a fee of 50 and a royalty of 20."""
    sale = NftItemSaleData(
        is_complete=False,
        created_at=1_700_000_000,
        marketplace_address=Address(MARKET),
        nft_address=Address(ITEM),
        nft_owner_address=Address(OWNER),
        full_price=1000,
        fees_cell=NftItemSaleFees(Address(RIVAL), 50, Address(COLLECTION), 20),
        can_deploy_by_external=True,
    )
    return sale.serialize()


def deploy(code: CoreCell, data: CoreCell | None = None) -> bytes:
    """Return a StateInit as a bag of cells."""
    builder = begin_cell().store_uint(0b00110, 5).store_ref(code)
    boc: bytes = builder.store_ref(data or begin_cell().end_cell()).end_cell().to_boc()
    return boc


OTHER_CODE = begin_cell().store_uint(7, 8).end_cell()


def put_on(scene: Scene, to: str, init_state: bytes | None, value: int = 10) -> None:
    """Send the item as the owner to a deployer, which deploys a contract and sends it there."""
    move_item(scene.external(OWNER), DEPLOYER)
    deployer = scene.steps[-1]
    deployer.send(MARKET, value=3)
    deployer.send(to, opcode=1, value=value, init_state=init_state).deploy()
    move_item(deployer, SALE, DEPLOYER)


def test_listing_has_the_terms_of_the_deployment(scene: Scene) -> None:
    know_sale(scene)
    put_on(scene, SALE, deploy(NFT_SALE_CODE, write_sale()))
    columns = scene.find("nft_put_on_sale").columns
    assert (columns["source"], columns["source_secondary"]) == (OWNER, DEPLOYER)
    assert (columns["destination"], columns["asset"]) == (SALE, COLLECTION)
    assert columns["nft_transfer_data"] == {"marketplace": None, "marketplace_address": MARKET}
    assert columns["nft_listing_data"] == {
        "nft_item_index": 7,
        "marketplace": "getgems",
        "full_price": 1000,
        "marketplace_fee": 50,
        "royalty_amount": 20,
        "marketplace_fee_address": RIVAL,
        "royalty_address": COLLECTION,
    }
    # The fee that the deployer paid to the marketplace is not part of it.
    assert scene.find("ton_transfer").columns["destination"] == MARKET


def test_listing_of_a_code_without_a_reader_has_the_terms_that_are_known(scene: Scene) -> None:
    know_sale(scene, royalty_address=RIVAL)
    put_on(scene, SALE, deploy(OTHER_CODE))
    listing = scene.find("nft_put_on_sale").columns["nft_listing_data"]
    assert (listing["full_price"], listing["marketplace_fee"]) == (5, 1)
    assert listing["royalty_address"] == RIVAL


def test_listing_with_fees_that_are_shares(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of version 4 of sales, which no package has, the hash of another code stands in."""
    monkeypatch.setattr(sale, "SALE_V4_CODE", OTHER_CODE.hash)
    know_sale(scene, royalty_address=RIVAL)
    put_on(scene, SALE, deploy(OTHER_CODE))
    listing = scene.find("nft_put_on_sale").columns["nft_listing_data"]
    assert (listing["full_price"], listing["royalty_address"]) == (5, RIVAL)
    assert (listing["marketplace_fee"], listing["royalty_amount"]) == (None, None)


def test_listing_on_an_auction(scene: Scene) -> None:
    know_auction(scene)
    scene.facts[SALE]["NftAuction"] |= {"mp_fee_addr": MARKET, "royalty_fee_addr": RIVAL}
    put_on(scene, SALE, deploy(OTHER_CODE))
    columns = scene.find("nft_put_on_auction").columns
    assert columns["nft_transfer_data"]["marketplace_address"] == MARKET
    listing = columns["nft_listing_data"]
    assert (listing["max_bid"], listing["min_bid"]) == (9, None)
    assert (listing["marketplace_fee_address"], listing["royalty_address"]) == (MARKET, RIVAL)


INIT = deploy(OTHER_CODE)


@pytest.mark.parametrize(
    ("to", "init_state", "fields"),
    [
        (SALE, None, {}),  # the sale existed before
        (RIVAL, INIT, {}),  # another contract is deployed
        (SALE, INIT, {"nft_owner_address": BUYER}),
        (SALE, INIT, {"nft_owner_address": None}),
    ],
)
def test_a_forwarded_item_is_not_a_listing(
    scene: Scene, to: str, init_state: bytes | None, fields: dict[str, object]
) -> None:
    know_sale(scene, **fields)
    put_on(scene, to, init_state)
    types = [each.type for each in scene.classify()]
    assert types.count("nft_transfer") == 2
    assert "nft_put_on_sale" not in types


def test_another_item_sent_to_the_sale_is_not_a_listing(scene: Scene) -> None:
    know_sale(scene)
    other = account("other item")
    scene.know(other, "NftItem", index=8, collection_address=COLLECTION, owner_address=OWNER)
    move_item(scene.external(OWNER), DEPLOYER)
    deployer = scene.steps[-1]
    deployer.send(SALE, opcode=1, init_state=INIT).deploy()
    deployer.send(other, transfer_body(SALE)).send(SALE, assigned_body(DEPLOYER))
    assert [each.type for each in scene.classify() if "put_on" in each.type] == []


def test_an_item_forwarded_to_another_contract_is_not_a_listing(scene: Scene) -> None:
    know_item(scene)
    put_on(scene, SALE, INIT)
    assert [each.type for each in scene.classify() if "put_on" in each.type] == []


@pytest.mark.parametrize("aborted", [False, True])
def test_update(scene: Scene, *, aborted: bool) -> None:
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


def test_cancelled_sale(scene: Scene) -> None:
    know_item(scene)
    scene.know(
        SALE, "NftSale", nft_address=ITEM, nft_owner_address=OWNER, marketplace_address=MARKET
    )
    move_item(scene.external(OWNER).send(SALE, opcode=sale.CANCEL_SALE), OWNER, SALE)
    columns = scene.find("nft_cancel_sale").columns
    assert (columns["source"], columns["destination"]) == (OWNER, SALE)
    assert columns["nft_transfer_data"]["marketplace_address"] == MARKET


def test_bid_and_refund(scene: Scene) -> None:
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
    scene: Scene, collection: str, content: dict[str, str], owner: str | None
) -> None:
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


def test_coins_for_an_owned_domain_are_no_bid(scene: Scene) -> None:
    scene.know(ITEM, "NftItem", index=7, collection_address=DNS_COLLECTION, owner_address=OWNER)
    scene.external(BUYER).send(ITEM)
    assert scene.find("ton_transfer").columns["destination"] == ITEM


@pytest.mark.parametrize("trigger", [comment("finish"), Cell(FINISH_AUCTION), Cell(CLOSE_AUCTION)])
def test_end_with_a_purchase(scene: Scene, trigger: Cell) -> None:
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
def test_end_without_a_payment(scene: Scene, trigger: Cell, new_owner: str, kind: str) -> None:
    know_auction(scene)
    move_item(scene.external(OWNER).send(SALE, trigger), new_owner, SALE)
    columns = scene.find(kind).columns
    assert (columns["asset_secondary"], columns["destination"]) == (ITEM, SALE)


@pytest.mark.parametrize("aborted", [False, True])
def test_telegram_auction_begins(scene: Scene, *, aborted: bool) -> None:
    know_item(scene, content={"uri": "https://nft.fragment.com/number/8.json"})
    body = Cell(sale.START_TELEGRAM).uint(1, 64)
    body.ref(body.child().address(OWNER).coins(5).coins(99).uint(5, 8).uint(60, 32).uint(9, 32))
    step = scene.external(OWNER).send(ITEM, body)
    if aborted:
        step.abort()
    else:
        step.send(OWNER, Cell(sale.TELEGRAM_OK).uint(1, 64))
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


def test_telegram_auction_is_cancelled(scene: Scene) -> None:
    know_item(scene, content={"uri": "https://nft.fragment.com/number/8.json"})
    scene.external(OWNER).send(ITEM, Cell(sale.CANCEL_TELEGRAM).uint(1, 64))
    columns = scene.find("teleitem_cancel_auction").columns
    assert (columns["source"], columns["destination"]) == (OWNER, ITEM)
