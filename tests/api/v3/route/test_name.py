"""Domains over HTTP, and in address books."""

import base64
from typing import Any

import pytest

from tests.api.v3.conftest import Asker
from tests.api.v3.scene import make_id, make_raw

ANN, BOB = make_raw("ann"), make_raw("bob")


@pytest.mark.parametrize(
    ("params", "domains"),
    [
        ({"wallet": ANN}, ["ann.ton", "longer.ton"]),
        ({"wallet": ANN, "limit": 1, "offset": 1}, ["longer.ton"]),
        ({"wallet": BOB}, ["longest.ton"]),
        ({"wallet": BOB, "mc_seqno": 4}, []),
        ({"domain": "a.ton"}, ["a.ton"]),
        ({"domain": "nobody.ton"}, []),
    ],
)
def test_records_by(market: Asker, params: dict[str, Any], domains: list[str]) -> None:
    answer = market("dns/records", **params)
    assert set(answer) == {"records", "address_book"}
    assert [row["domain"] for row in answer["records"]] == domains


def test_record(market: Asker) -> None:
    (record,) = market("dns/records", domain="ann.ton", mc_seqno=2)["records"]
    assert record == {
        "nft_item_address": make_raw("ann.ton"),
        "nft_item_owner": BOB,
        "domain": "ann.ton",
        "dns_next_resolver": None,
        "dns_wallet": ANN,
        "dns_site_adnl": base64.b64encode(make_id("site")).decode(),
        "dns_storage_bag_id": None,
    }


def test_one_of_wallet_and_domain(market: Asker) -> None:
    assert market.refused("dns/records") == (422, "either wallet address or domain is required")
    both = "provide either wallet address or domain, not both"
    assert market.refused("dns/records", wallet=ANN, domain="a.ton") == (422, both)


def test_the_book_has_the_shortest_name_that_is_owned_and_points_back(market: Asker) -> None:
    book = market("addressBook", address=[ANN, BOB, make_raw("boss")])
    names = [book[address]["domain"] for address in (ANN, BOB, make_raw("boss"))]
    assert names == ["ann.ton", None, None]
