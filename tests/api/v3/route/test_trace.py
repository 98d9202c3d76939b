"""The operations about traces, over the demo lake and over mainnet recordings."""

import base64
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from litestar.testing import TestClient

from tests.api.v3.conftest import Asker, Facts
from tests.ingest.whole import ingest_node
from tests.lake.chain import commit_made
from tests.patience import PATIENT, compose
from tonlake.api.app import create_app
from tonlake.api.request.call import parse_shard
from tonlake.api.settings import Settings
from tonlake.api.v3.resource.action import load_fields, render_details
from tonlake.api.v3.route import trace as trace_routes
from tonlake.ingest.decode.block.transaction import decode_transaction
from tonlake.ingest.derive.stages import derive_in_order, rebuild
from tonlake.ingest.derive.trace import TraceFiles
from tonlake.lake.schema import MESSAGES, TRANSACTIONS
from tonlake.lake.schema.action_type import NAMES, expand_names

Trace = dict[str, Any]

ELECTOR = f"-1:{'33' * 32}"
NO_HASH = "00" * 32


@pytest.fixture(scope="module")
def traces(ask: Asker) -> list[Trace]:
    """Every trace of the demo lake."""
    return ask.all("traces")


def test_every_transaction_has_one_trace(traces: list[Trace], facts: Facts) -> None:
    held = Counter(tx_hash for trace in traces for tx_hash in trace["transactions_order"])
    assert set(held.values()) == {1}
    assert sorted(held) == sorted(facts.transaction_hashes())


def test_traces_come_latest_end_first(traces: list[Trace]) -> None:
    keys = [(int(trace["end_lt"]), base64.b64decode(trace["trace_id"])) for trace in traces]
    assert keys == sorted(keys, reverse=True)


def test_trace_columns_follow_from_its_transactions(traces: list[Trace]) -> None:
    for trace in traces:
        own = list(trace["transactions"].values())
        order = sorted(own, key=lambda row: (int(row["lt"]), row["account"]))
        assert [row["hash"] for row in order] == trace["transactions_order"]
        assert {row["trace_id"] for row in own} == {trace["trace_id"]}
        assert int(trace["start_lt"]) == int(order[0]["lt"])
        assert int(trace["end_lt"]) == int(order[-1]["lt"])
        assert trace["start_utime"] == min(row["now"] for row in own)
        assert trace["end_utime"] == max(row["now"] for row in own)
        assert int(trace["mc_seqno_start"]) == min(row["mc_block_seqno"] for row in own)
        assert int(trace["mc_seqno_end"]) == max(row["mc_block_seqno"] for row in own)
        logs = sum(message["destination"] is None for row in own for message in row["out_msgs"])
        pending = sum(len(row["out_msgs"]) for row in own) - logs - (len(own) - 1)
        assert trace["trace_info"] == {
            "trace_state": "pending" if pending else "complete",
            "messages": sum(row["in_msg"] is not None for row in own) + logs,
            "transactions": len(own),
            "pending_messages": pending,
            "classification_state": "unclassified",
        }
        root = trace["transactions"][trace["trace_id"]]
        assert trace["external_hash"] == (root["in_msg"] and root["in_msg"]["hash"])
        assert trace["is_incomplete"] == bool(pending)
        assert not {"warning", "actions"} & trace.keys()


def test_the_tree_follows_the_messages(traces: list[Trace]) -> None:
    for trace in traces:
        seen = []
        todo = [trace["trace"]]
        while todo:
            node = todo.pop()
            seen.append(node["tx_hash"])
            transaction = trace["transactions"][node["tx_hash"]]
            sent = [message["hash"] for message in transaction["out_msgs"]]
            children = node["children"]
            if not children:
                assert children == (None if sent else [])
                continue
            assert {child["in_msg_hash"] for child in children} <= set(sent)
            order = [trace["transactions_order"].index(child["tx_hash"]) for child in children]
            assert order == sorted(order)
            todo += children
        assert sorted(seen) == sorted(trace["transactions"])


def test_filters(ask: Asker, traces: list[Trace]) -> None:
    largest = max(traces, key=lambda trace: trace["trace_info"]["transactions"])
    last = largest["transactions"][largest["transactions_order"][-1]]
    end_lt, account = int(largest["end_lt"]), last["account"]
    of_account = [
        each
        for each in traces
        if any(row["account"] == account for row in each["transactions"].values())
    ]
    wanted: list[tuple[dict[str, object], list[Trace]]] = [
        ({"trace_id": largest["trace_id"]}, [largest]),
        ({"tx_hash": last["hash"]}, [largest]),
        ({"msg_hash": last["in_msg"]["hash"]}, [largest]),
        ({"tx_hash": NO_HASH}, []),
        ({"msg_hash": NO_HASH}, []),
        ({"trace_id": NO_HASH}, []),
        ({"start_lt": end_lt}, [each for each in traces if int(each["end_lt"]) >= end_lt]),
        ({"end_lt": end_lt}, [each for each in traces if int(each["end_lt"]) <= end_lt]),
        (
            {"mc_seqno": int(largest["mc_seqno_end"])},
            [each for each in traces if each["mc_seqno_end"] == largest["mc_seqno_end"]],
        ),
        ({"account": account}, of_account),
    ]
    for params, expected in wanted:
        found = [trace["trace_id"] for trace in ask.all("traces", **params)]
        assert found == [trace["trace_id"] for trace in expected], params


def test_time_filters_order_by_time(ask: Asker, traces: list[Trace]) -> None:
    times = sorted(trace["end_utime"] for trace in traces)
    first, last = times[50], times[300]
    found = ask.all("traces", start_utime=first, end_utime=last)
    keys = [(trace["end_utime"], base64.b64decode(trace["trace_id"])) for trace in found]
    assert keys == sorted(keys, reverse=True)
    assert len(found) == sum(first <= time <= last for time in times)


def test_an_external_message_finds_all_its_executions(ask: Asker, traces: list[Trace]) -> None:
    counts = Counter(trace["external_hash"] for trace in traces if trace["external_hash"])
    for external_hash, count in counts.most_common(5):
        found = ask("traces", msg_hash=external_hash, limit=1000)["traces"]
        assert len(found) == count
        root = found[0]["transactions"][found[0]["trace_id"]]["in_msg"]
        norm = root.get("hash_norm", external_hash)
        by_norm = ask("traces", msg_hash=norm, limit=1000)["traces"]
        assert {each["trace_id"] for each in found} <= {each["trace_id"] for each in by_norm}


def test_actions_are_accepted(ask: Asker) -> None:
    answer = ask("traces", limit=1, include_actions="true", supported_action_types="v2")
    assert answer["traces"][0]["actions"] == []
    answer = ask("events", limit=1)
    assert list(answer) == ["events", "address_book", "metadata"]
    assert answer["events"][0]["actions"] == []


def test_refusals(ask: Asker) -> None:
    text = "only one of account, trace_id, tx_hash, msg_hash should be specified"
    assert ask.refused("traces", account=ELECTOR, tx_hash=NO_HASH) == (422, text)
    assert ask.refused("events", trace_id=NO_HASH, msg_hash=NO_HASH) == (422, text)
    assert ask.refused("traces", mc_seqno=100_000)[0] == 404
    assert ask.refused("traces", limit=1001) == (422, "limit is not allowed: 1001 > 1000")
    for cursor in ("7", f"7:{NO_HASH}0", f"-1:{NO_HASH}", f"{1 << 63}:{NO_HASH}"):
        assert ask.refused("traces", cursor=cursor)[0] == 422
    status, text = ask.refused("traces", start_utime=1, end_utime=2)
    assert status == 404
    assert "this lake covers" in text


@mock.patch.object(trace_routes, "TRACE_TRANSACTIONS", 3)
@mock.patch.object(trace_routes, "PAGE_TRANSACTIONS", 20)
def test_limits_of_a_page(demo_lake: Path, traces: list[Trace]) -> None:
    with TestClient(create_app(demo_lake, Settings())) as client:
        ask = Asker(client)
        large = max(traces, key=lambda trace: trace["trace_info"]["transactions"])
        shown = ask("traces", trace_id=large["trace_id"])["traces"][0]
        assert shown["warning"] == "trace is too large"
        assert shown["is_incomplete"] is True
        assert "transactions" not in shown
        status, text = ask.refused("traces", limit=1000)
        assert status == 422
        assert "ask for fewer traces" in text


def test_transactions_carry_their_trace(ask: Asker, traces: list[Trace]) -> None:
    trace_of = {tx: trace["trace_id"] for trace in traces for tx in trace["transactions_order"]}
    for transaction in ask("transactions", limit=500)["transactions"]:
        assert transaction["trace_id"] == trace_of[transaction["hash"]]


@pytest.fixture(scope="module")
def recorded(shared: Path) -> list[Trace]:
    """Traces as the public service answered them."""
    files = sorted((shared / "data" / "responses" / "v3" / "traces").glob("*.json"))
    return [trace for file in files for trace in json.loads(file.read_text())["traces"]]


def _decode_recorded(trace: Trace, bocs: dict[str, bytes]) -> dict[str, pa.Table]:
    """Return the rows of a recorded trace: from its cells, and from what only blocks know."""
    transactions, messages = [], []
    for tx_hash, answer in trace["transactions"].items():
        row, own = decode_transaction(bocs[tx_hash])
        block, seqno = answer["block_ref"], answer["mc_block_seqno"]
        row |= {
            "workchain": block["workchain"],
            "shard": parse_shard(block["shard"]),
            "block_seqno": block["seqno"],
            "mc_seqno": seqno,
        }
        transactions.append(row)
        place = {"tx_workchain": block["workchain"], "mc_seqno": seqno}
        messages += [message | place for message in own]
    return {
        "transactions": pa.Table.from_pylist(transactions, schema=TRANSACTIONS.arrow),
        "messages": pa.Table.from_pylist(messages, schema=MESSAGES.arrow),
    }


@pytest.fixture(scope="module")
def ask_recorded(
    pairs: list[Trace], recorded: list[Trace], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asker]:
    """Ask over a lake of the recorded answers' transactions."""
    bocs = {pair["tx_hash"]: base64.b64decode(pair["boc"]) for pair in pairs}
    lake_dir = tmp_path_factory.mktemp("answers")
    parts = [_decode_recorded(trace, bocs) for trace in recorded]
    tables = {name: pa.concat_tables([part[name] for part in parts]) for name in parts[0]}
    first = min(int(trace["mc_seqno_start"]) for trace in recorded)
    last = max(int(trace["mc_seqno_end"]) for trace in recorded)
    derive = derive_in_order({"traces": TraceFiles(lake_dir)})
    commit_made(lake_dir, first, last, tables, derive=derive)
    with TestClient(create_app(lake_dir, PATIENT)) as client:
        yield Asker(client)


def test_recorded_traces_are_equal(ask_recorded: Asker, recorded: list[Trace]) -> None:
    assert len(recorded) >= 13
    # What these say of each transaction has tests of its own; actions come from elsewhere.
    apart = ("transactions", "actions")
    for answer in recorded:
        (ours,) = ask_recorded("traces", trace_id=answer["trace_id"])["traces"]
        left, right = (
            {name: value for name, value in trace.items() if name not in apart}
            for trace in (ours, answer)
        )
        assert left == right
        assert ours["transactions"].keys() == answer["transactions"].keys()
        for tx_hash, transaction in answer["transactions"].items():
            for name in ("trace_id", "mc_block_seqno", "block_ref", "lt", "account", "now"):
                assert ours["transactions"][tx_hash].get(name) == transaction.get(name), name


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


def test_filters_of_actions(actions: list[Action], client: TestClient[Any]) -> None:
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
    for other in ({"tx_hash": one["transactions"][0]}, {"trace_id": one["trace_id"]}):
        assert ask(**other)
        assert not ask(**other, msg_hash=NO_HASH)
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
    assert types <= set(NAMES["v1"])


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
    assert sizes == [24, 47, 64, 76, 80]
    later = {"wallet_v5_add_extension", "wallet_v5_remove_extension"}
    assert expand_names(("latest",)) == expand_names(("v5",)) | later
    others = {"extra_currency_transfer", "nonsense"}
    assert expand_names(("nonsense",)) == {*NAMES["v1"], *others}
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
    ingest_node(demo_node, tmp_path, settings, 1, 60)
    with TestClient(create_app(tmp_path, PATIENT)) as service:
        answer = service.get("/api/v3/actions")
        assert answer.status_code == 503
        assert "tonlake rebuild actions" in answer.json()["error"]
    rebuild("actions", tmp_path, settings)
    with TestClient(create_app(tmp_path, PATIENT)) as service:
        answer = service.get("/api/v3/actions")
        assert answer.status_code == 200
        assert answer.json()["actions"]
