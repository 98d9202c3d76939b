"""Tables derived from actions: swaps and sales in separate columns."""

from typing import Any

from tests.ingest.derive.action.protocol import test_dedust_v2 as dedust
from tests.ingest.derive.action.protocol import test_sale as sale
from tests.ingest.derive.action.protocol.test_nft import ITEM, MARKET, OWNER, SALE
from tests.ingest.derive.action.scene import Scene
from tonlake.ingest.derive.action.row import list_rows, make_tables
from tonlake.lake.schema import ACTION_ACCOUNTS, ACTIONS, DEX_SWAPS, NFT_SALES_EVENTS, Table


def collect(scene: Scene, table: Table) -> list[dict[str, Any]]:
    rows = [*list_rows(scene.trace(), scene.classify())]
    found: list[dict[str, Any]] = make_tables(rows)[table.name].to_pylist()
    return found


def test_swap_on_two_pools(scene: Scene) -> None:
    dedust.swap_twice(scene)
    (row,) = collect(scene, DEX_SWAPS)
    assert (row["dex"], row["sender"], row["hops"]) == ("dedust_v2", dedust.OWNER, 2)
    assert row["pool"] == dedust.POOL
    assert (row["asset_in"], row["amount_in"]) == (None, 69)
    assert (row["asset_out"], row["amount_out"]) == (dedust.OTHER, 8)


def test_refused_swap_names_the_pool_that_refused_it(scene: Scene) -> None:
    assets = [{"is_ton": True, "address": None}, {"is_ton": False, "address": dedust.COIN}]
    scene.know(dedust.POOL, "DedustPool", assets=assets)
    pool = scene.external(dedust.OWNER).send(dedust.POOL, dedust.pay(70))
    pool.send(dedust.OWNER, dedust.payout(70, 30))
    (row,) = collect(scene, DEX_SWAPS)
    assert (row["pool"], row["success"], row["amount_out"]) == (dedust.POOL, False, 0)


def test_listing(scene: Scene) -> None:
    sale.know_sale(scene)
    sale.put_on(scene, SALE, sale.INIT)
    (row,) = collect(scene, NFT_SALES_EVENTS)
    assert (row["event"], row["seller"], row["buyer"]) == ("nft_put_on_sale", OWNER, None)
    assert (row["item"], row["sale"], row["price"]) == (ITEM, SALE, 5)
    assert (row["marketplace"], row["marketplace_address"]) == ("getgems", MARKET)


def test_no_actions() -> None:
    assert {name: table.num_rows for name, table in make_tables([]).items()} == {
        table.name: 0 for table in (ACTIONS, ACTION_ACCOUNTS, DEX_SWAPS, NFT_SALES_EVENTS)
    }
