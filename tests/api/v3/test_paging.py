"""Pages of every list: their union is the whole list, in order, without overlaps."""

import csv
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient

from tests.api.v3.conftest import Asker

CONFIG, COLLECTOR = "-1:" + "5" * 64, "-1:" + "3" * 64


class Listing(msgspec.Struct, frozen=True):
    """A list of the API: its operation, the key of its rows, and filters that keep it short."""

    operation: str
    rows: str
    filters: dict[str, Any]

    def __str__(self) -> str:
        """Return a short name for the test."""
        return "-".join((self.operation, *self.filters))


LISTINGS = (
    Listing("blocks", "blocks", {"end_lt": 40000000}),
    Listing("blocks", "blocks", {"shard": "4000000000000000"}),
    Listing("masterchainBlockShards", "blocks", {"seqno": 119}),
    Listing("transactions", "transactions", {"end_lt": 15000000}),
    Listing("transactions", "transactions", {"end_utime": 1795234645, "workchain": 0}),
    Listing("transactions", "transactions", {"account": CONFIG, "end_lt": 40000000}),
    Listing("transactions", "transactions", {"account": [CONFIG, COLLECTOR], "end_lt": 15000000}),
    Listing("transactions", "transactions", {"exclude_account": CONFIG, "end_lt": 15000000}),
    Listing("transactionsByMasterchainBlock", "transactions", {"seqno": 20}),
    Listing("transactionsByMessage", "transactions", {"opcode": "0x595f07bc"}),
    Listing("messages", "messages", {"end_lt": 15000000}),
    Listing("messages", "messages", {"only_externals": True, "destination": "null"}),
    Listing("messages", "messages", {"end_utime": 1795234645}),
    Listing("messages", "messages", {"opcode": "0x0f8a7ea5", "direction": "in"}),
)


def _ask(ask: Asker, listing: Listing, **params: object) -> list[Any]:
    answer = ask(listing.operation, x_no_address_book=True, **listing.filters, **params)
    return list(answer[listing.rows])


@pytest.mark.parametrize("listing", LISTINGS, ids=str)
@settings(max_examples=2, deadline=None)
@given(data=st.data())
def test_pages_are_complete(ask: Asker, listing: Listing, data: st.DataObject) -> None:
    for sort in ("asc", "desc"):
        whole = _ask(ask, listing, sort=sort, limit=1000)
        size = data.draw(st.integers(max(1, len(whole) // 4), len(whole) + 1))
        found: list[Any] = []
        while page := _ask(ask, listing, sort=sort, limit=size, offset=len(found)):
            assert len(page) <= size
            found += page
        assert found == whole


def test_pages_of_top_accounts_are_complete(ask: Asker) -> None:
    whole = ask("topAccountsByBalance", limit=1000)
    found: list[Any] = []
    while page := ask("topAccountsByBalance", limit=17, offset=len(found)):
        found += page
    assert found == whole


NOT_THERE = "unknown path"


def test_all_routes_answer(client: TestClient[Any], shared: Path) -> None:
    with (shared / "reference" / "endpoints.csv").open(encoding="utf-8") as file:
        routes = [(row["method"], row["path"]) for row in csv.DictReader(file)]
    assert len(routes) == 47
    for method, path in routes:
        answer = client.request(method, path, follow_redirects=False)
        assert NOT_THERE not in answer.text, path
        assert answer.status_code not in (405, 500), (path, answer.text)
