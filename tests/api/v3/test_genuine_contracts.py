"""Lists of genuine nodes' contracts agree with their get-methods, now and in the past."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.v3.conftest import Asker, Facts
from tests.api.v3.genuine import compare_contract, to_raw
from tests.patience import PATIENT
from tonlake.api.app import create_app

PAST = 150


def test_contracts_of_the_demo_node(ask: Asker, facts: Facts) -> None:
    compared = [item["kind"] for item in facts.contracts if compare_contract(ask, item)]
    assert len(compared) == 38
    assert len(set(compared)) == 6


@pytest.mark.usefixtures("tvm")
@pytest.mark.parametrize(
    ("operation", "key", "parameter", "method", "kind", "values"),
    [
        ("jetton/wallets", "jetton_wallets", "address", "get_wallet_data", "jetton_wallet",
         lambda row: (row["balance"],)),
        ("jetton/masters", "jetton_masters", "address", "get_jetton_data", "jetton_master",
         lambda row: (row["total_supply"], str(-row["mintable"]))),
        ("nft/collections", "nft_collections", "collection_address", "get_collection_data",
         "nft_collection", lambda row: (row["next_item_index"],)),
    ],
)  # fmt: skip
def test_past_states_equal_past_get_methods(
    ask: Asker, facts: Facts, operation: str, key: str, parameter: str, method: str, kind: str,
    values: Any,
) -> None:  # fmt: skip
    differing = 0
    for contract in [item for item in facts.contracts if item["kind"] == kind]:
        address = to_raw(contract["address"])
        rows = ask(operation, **{parameter: address, "mc_seqno": PAST})[key]
        body = {"address": address, "method": method, "stack": [], "seqno": PAST}
        answer = ask.client.post("/api/v3/runGetMethod", json=body).json()
        if not rows:
            assert answer["exit_code"] != 0
            continue
        said = values(rows[0])
        stack = [str(int(entry["value"], 16)) for entry in answer["stack"][: len(said)]]
        assert tuple(stack) == said
        (now,) = ask(operation, **{parameter: address})[key]
        differing += values(now) != said
    assert differing or kind == "nft_collection"


@pytest.mark.usefixtures("tvm")
def test_moves_of_a_trace_equal_its_balances(ask: Asker) -> None:
    """Jettons: each transfer of a complete trace takes from one owner and gives to another."""
    rows = ask("jetton/transfers", limit=20)["jetton_transfers"]
    assert rows
    for row in rows:
        found = ask("balanceChanges", trace_id=row["trace_id"])
        gained = found["jettons"].get(row["destination"], {}).get(row["jetton_master"])
        lost = found["jettons"].get(row["source"], {}).get(row["jetton_master"])
        (trace,) = ask("traces", trace_id=row["trace_id"])["traces"]
        accounts = {tx["account"] for tx in trace["transactions"].values()}
        assert set(found["changes"]) == set(found["fees"]) == accounts
        if trace["trace_info"]["transactions"] < 6:
            assert gained == row["amount"]
            assert lost == f"-{row['amount']}"


@pytest.mark.long
def test_contracts_of_a_larger_node(shared: Path, ingest_network: Callable[[str], Path]) -> None:
    contracts = json.loads((shared / "node" / "expected.json").read_bytes())["contracts"]
    with TestClient(create_app(ingest_network("node/localnet-db"), PATIENT)) as client:
        compared = {item["kind"] for item in contracts if compare_contract(Asker(client), item)}
    assert len(compared) == 11
