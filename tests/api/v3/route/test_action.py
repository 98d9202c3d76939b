"""Actions over HTTP, on the demo lake."""

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.v3.conftest import Asker
from tests.patience import PATIENT, compose
from tonlake.api.app import create_app
from tonlake.api.v3.resource.action import load_fields, render_details
from tonlake.ingest.derive.action.version import NAMES, V1, expand_names
from tonlake.ingest.derive.stages import rebuild
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span

Action = dict[str, Any]

_RAW_ADDRESS = re.compile(r'"(-?[0-9]+:[0-9A-F]{64})"')


@pytest.fixture(scope="module")
def actions(client: TestClient[Any]) -> list[Action]:
    """Every action that the newest clients know, page by page."""
    found: list[Action] = []
    cursor = None
    while True:
        params: dict[str, Any] = {"limit": 100, "include_accounts": "true"}
        if cursor:
            params["cursor"] = cursor
        answer = client.get("/api/v3/actions", params=params)
        assert answer.status_code == 200, answer.text
        found += answer.json()["actions"]
        cursor = answer.headers.get("x-tonlake-cursor")
        if cursor is None:
            return found


def place(action: Action) -> tuple[int, str]:
    """Return by what actions are ordered first."""
    return int(action["trace_end_lt"]), action["trace_id"]


def test_the_book_has_every_address_of_the_details(
    actions: list[Action], client: TestClient[Any]
) -> None:
    kinds = {"jetton_transfer", "change_dns", "nft_mint"}
    found = [action for action in actions if action["type"] in kinds]
    named = set(_RAW_ADDRESS.findall(json.dumps([action["details"] for action in found])))
    by_type: dict[str, Any] = {"limit": 1000, "action_type": sorted(kinds)}
    trace_ids = sorted({action["trace_id"] for action in found})
    traced: dict[str, Any] = {"limit": 1000, "trace_id": trace_ids}
    for path, params in (("actions", by_type), ("traces", traced | {"include_actions": "true"})):
        answer = client.get(f"/api/v3/{path}", params=params).json()
        assert named - answer["address_book"].keys() == set()
        assert any(
            one["token_info"][0]["type"] == "jetton_masters" for one in answer["metadata"].values()
        )


def test_pages_follow_each_other_without_gap(
    actions: list[Action], client: TestClient[Any]
) -> None:
    ids = [(action["trace_id"], action["action_id"]) for action in actions]
    assert len(set(ids)) == len(ids) > 500
    ends = [int(action["trace_end_lt"]) for action in actions]
    assert ends == sorted(ends, reverse=True)
    upwards = client.get("/api/v3/actions", params={"limit": 50, "sort": "asc"}).json()["actions"]
    assert [each["action_id"] for each in upwards] == [each["action_id"] for each in actions][
        :-51:-1
    ]


def test_demo_lake_has_jettons_nfts_and_domains(actions: list[Action]) -> None:
    types = {action["type"] for action in actions}
    assert {"ton_transfer", "jetton_mint", "nft_transfer", "change_dns", "tick_tock"} - types == {
        "tick_tock"
    }


def test_filters(actions: list[Action], client: TestClient[Any]) -> None:
    def ask(**params: Any) -> list[Action]:
        answer = client.get("/api/v3/actions", params={"limit": 1000, **params})
        assert answer.status_code == 200, answer.text
        found: list[Action] = answer.json()["actions"]
        return found

    one = next(action for action in actions if action["type"] == "change_dns")
    account = one["accounts"][0]
    mine = [action["action_id"] for action in actions if account in action["accounts"]]
    assert [each["action_id"] for each in ask(account=account)] == mine
    assert one["action_id"] in {each["action_id"] for each in ask(tx_hash=one["transactions"][0])}
    assert [each["action_id"] for each in ask(action_id=one["action_id"])] == [one["action_id"]]
    assert {each["trace_id"] for each in ask(trace_id=one["trace_id"])} == {one["trace_id"]}
    assert {each["type"] for each in ask(action_type="change_dns")} == {"change_dns"}
    assert "change_dns" not in {each["type"] for each in ask(exclude_action_type="change_dns")}
    together = ask(account=account, tx_hash=one["transactions"][0], action_type="change_dns")
    assert [each["action_id"] for each in together] == [one["action_id"]]


def test_whole_transactions(client: TestClient[Any]) -> None:
    answer = client.get("/api/v3/actions", params={"limit": 3, "include_transactions": "true"})
    for action in answer.json()["actions"]:
        hashes = {each["hash"] for each in action["transactions_full"]}
        assert hashes == set(action["transactions"])


def test_old_clients_see_only_what_they_know(client: TestClient[Any]) -> None:
    params: dict[str, Any] = {"limit": 1000, "supported_action_types": "latest"}
    answer = client.get("/api/v3/actions", params=params, headers={"X-Actions-Version": "v1"})
    types = {action["type"] for action in answer.json()["actions"]}
    assert types
    assert types <= set(V1)


def test_type_that_no_name_can_be(client: TestClient[Any]) -> None:
    answer = client.get("/api/v3/actions", params={"action_type": "a,b"})
    assert answer.status_code == 422
    assert "action_type contains invalid characters" in answer.text


def test_traces_with_actions(ask: Asker, actions: list[Action]) -> None:
    known = {(action["trace_id"], action["action_id"]) for action in actions}
    page = ask("traces", limit=50, include_actions="true")["traces"]
    shown = {(trace["trace_id"], each["action_id"]) for trace in page for each in trace["actions"]}
    assert shown
    assert shown <= known
    for trace in page:
        lts = [int(action["start_lt"]) for action in trace["actions"]]
        assert lts == sorted(lts)


def test_versions_grow() -> None:
    sizes = [len(expand_names((name,))) for name in ("v1", "v2", "v3", "v4", "v5")]
    assert sizes == [23, 46, 63, 75, 79]
    later = {"wallet_v5_add_extension", "wallet_v5_remove_extension"}
    assert expand_names(("latest",)) == expand_names(("v5",)) | later
    assert expand_names(("nonsense",)) == {*V1, "nonsense"}
    assert "tgbtc_burn" in expand_names(("tgbtc",))


def test_every_type_but_two_has_details() -> None:
    types = {name for names in NAMES.values() for name in names} - set(NAMES)
    assert types - set(load_fields()) == {"unknown", "coffee_mev_protect_failed_swap", "tick_tock"}


@pytest.mark.parametrize("kind", sorted(load_fields()))
def test_details_of_actions_without_any(kind: str) -> None:
    row = dict.fromkeys(
        [
            *("source", "source_secondary", "destination", "destination_secondary", "asset"),
            *("asset_secondary", "asset2", "asset2_secondary", "opcode", "amount", "value"),
            *("value_extra_currencies", "details"),
        ]
    )
    details = render_details({**row, "type": kind})
    plain = {
        each.name for each in load_fields()[kind] if not each.is_optional and each.place != "*"
    }
    assert plain <= details.keys()
    flat = {**details, **(details.get("value") or {})}
    assert all(not value or isinstance(value, dict) for value in flat.values())


def test_unclassified_is_not_empty(demo_node: Path, tmp_path: Path) -> None:
    settings = compose(ingest={"classify_actions": False, "detect_contracts": False})
    with closing(open_node(demo_node)) as source:
        ingest(source, tmp_path, Span(1, 60), settings)
    with TestClient(create_app(tmp_path, PATIENT)) as service:
        answer = service.get("/api/v3/actions")
        assert answer.status_code == 503
        assert "tonlake rebuild actions" in answer.json()["error"]
    rebuild("actions", tmp_path, settings)
    with TestClient(create_app(tmp_path, PATIENT)) as service:
        answer = service.get("/api/v3/actions")
        assert answer.status_code == 200
        assert answer.json()["actions"]
