"""Activities on the demo node as listed by their authors, against the classified actions."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.whole import read_table
from tonlake.lake.schema import ACTIONS, TRANSACTION_TRACES

Row = dict[str, Any]

KINDS = {
    "jetton_mint": "jetton_mint",
    "jetton_transfer": "jetton_transfer",
    "jetton_burn": "jetton_burn",
    "nft_mint": "nft_mint",
    "nft_batch_mint": "nft_mint",
    "nft_transfer": "nft_transfer",
    "nft_transfer_not_owner": "nft_transfer",
    "nft_get_static_data": "nft_discovery",
    "dns_bid": "auction_bid",
    "dns_bid_too_low": "ton_transfer",
    "dns_set_record": "change_dns",
    "dns_set_record_not_owner": "change_dns",
    "dns_transfer": "nft_transfer",
}
"""Action of each kind of activity."""

ALIKE = {"change_dns": "delete_dns"}
"""Action for setting a record to nothing."""

REFUSED = {"nft_transfer_not_owner", "dns_bid_too_low", "dns_set_record_not_owner"}
"""Kinds rejected by a contract."""

BY_OTHERS = {"jetton_mint", "nft_mint"}
"""Types whose source is not the requesting wallet."""


@pytest.fixture(scope="module")
def actions(demo_lake: Path) -> dict[bytes, list[Row]]:
    """All actions, by the hash of each transaction of their traces."""
    by_trace: dict[bytes, list[Row]] = defaultdict(list)
    for row in read_table(demo_lake, ACTIONS.name):
        by_trace[row["trace_id"]].append(row)
    transactions = read_table(demo_lake, TRANSACTION_TRACES.name)
    return {row["hash"]: by_trace[row["trace_id"]] for row in transactions}


@pytest.fixture(scope="module")
def activities(demo_facts: Path) -> list[Row]:
    """The activities that reached the chain."""
    listed = json.loads((demo_facts / "expected.json").read_bytes())["activities"]
    return [each for each in listed if each.get("found") and each["kind"] in KINDS]


def test_every_activity_is_its_action(
    actions: dict[bytes, list[Row]], activities: list[Row]
) -> None:
    seen = set()
    for activity in activities:
        kind = KINDS[activity["kind"]]
        rows = actions[bytes.fromhex(activity["trace"][0]["hash"])]
        mine = [row for row in rows if row["type"] in {kind, ALIKE.get(kind)}]
        assert mine, (activity["kind"], [row["type"] for row in rows])
        seen.add(kind)
        if kind not in BY_OTHERS:
            assert activity["wallet"].upper() in {row["source"] for row in mine}
    assert seen == set(KINDS.values())


def test_refusals_are_failures(actions: dict[bytes, list[Row]], activities: list[Row]) -> None:
    for activity in activities:
        if activity["kind"] in REFUSED:
            rows = actions[bytes.fromhex(activity["trace"][0]["hash"])]
            kind = KINDS[activity["kind"]]
            assert not any(row["success"] for row in rows if row["type"] == kind)
