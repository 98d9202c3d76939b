"""Every page over the demo lake by HTTP: its text, its links, and its resources."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from litestar.testing import TestClient

from tests.api.explorer.page import Walker, to_hex
from tests.ingest.whole import ingest_node
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.settings import Settings


def test_the_start_page_leads_everywhere(walk: Walker, client: TestClient[Any]) -> None:
    page = walk("/")
    assert {"/blocks", "/lake", "/docs", "/openapi.json"} <= set(page.links)
    assert "/sql" not in page.links
    assert "238" in page.words
    for load in set(page.loads) - {"/search", "/theme"}:
        assert client.get(load).status_code == 200, load


def test_a_split_shard_leads_on_to_its_halves(client: TestClient[Any], walk: Walker) -> None:
    blocks = client.get("/api/v3/blocks?workchain=0&shard=8000000000000000&limit=1000").json()
    split = next(each for each in blocks["blocks"] if each["before_split"])
    page = walk(f"/block/0:8000000000000000:{split['seqno']}")
    for half in ("4000000000000000", "c000000000000000"):
        assert f"/block/0:{half}:{split['seqno'] + 1}" in page.links


def test_a_walk_from_search_to_block_and_back(
    walk: Walker, client: TestClient[Any], transfer: dict[str, Any]
) -> None:
    sender = transfer["details"]["sender"]
    found = client.get("/search", params={"q": sender}, follow_redirects=False)
    assert found.status_code == 303
    account = walk(found.headers["location"])
    trace_path = next(link for link in account.links if link.startswith("/trace/"))
    trace = walk(trace_path)
    block_path = next(link for link in trace.links if link.startswith("/block/"))
    block = walk(block_path)
    shard_path = next(link for link in block.links if link.startswith("/block/0:"))
    shard = walk(shard_path)
    assert any(link.startswith("/block/-1:8000000000000000:") for link in shard.links)
    transaction_path = next(link for link in trace.links if link.startswith("/transaction/"))
    transaction = walk(transaction_path)
    assert any(link.startswith("/account/") for link in transaction.links)
    assert "/" in transaction.links


def test_a_trace_is_drawn_and_told(walk: Walker, transfer: dict[str, Any]) -> None:
    page = walk(f"/trace/{to_hex(transfer['trace_id'])}")
    boxes = [attrs for _tag, attrs in page.tags if (attrs.get("class") or "").startswith("box ")]
    edges = [attrs for _tag, attrs in page.tags if (attrs.get("class") or "").startswith("edge ")]
    assert len(boxes) == len(edges) + 1 >= 4
    assert " sent " in page.words
    assert "0x0f8a7ea5" in page.words
    assert "jetton_transfer" in page.words


def test_a_trace_is_found_by_message_and_transaction(
    walk: Walker, ask: Callable[..., Any], transfer: dict[str, Any]
) -> None:
    last = transfer["transactions"][-1]
    transaction = ask("transactions", hash=last)["transactions"][0]
    for each in (last, transaction["in_msg"]["hash"]):
        assert to_hex(transfer["trace_id"]) in walk(f"/trace/{to_hex(each)}").words


def test_a_transaction_shows_phases_fees_and_bodies(
    walk: Walker, transfer: dict[str, Any], ask: Callable[..., Any]
) -> None:
    root = transfer["trace_id"]
    transaction = ask("transactions", hash=root)["transactions"][0]
    page = walk(f"/transaction/{to_hex(root)}")
    for word in ("Storage", "Compute", "Action", "Gas", "Balance before", "State hash"):
        assert word in page.words
    for message in (transaction["in_msg"], *transaction["out_msgs"]):
        assert to_hex(message["hash"]) in page.words
        assert message["decoded_opcode"] in page.words
    assert f"Total {int(transaction['total_fees']) / 1e9:.9f}".rstrip("0") in page.words


def test_messages_of_an_account_are_listed_by_direction(
    walk: Walker, transfer: dict[str, Any]
) -> None:
    sender = transfer["details"]["sender"]
    for way in ("in", "out", "external"):
        page = walk(f"/account/{sender}", show="messages", way=way)
        query = {"in": "destination", "external": "destination", "out": "source"}[way]
        assert [link for link in page.links if link.startswith("/trace/")], (way, query)


def test_no_signature_is_taken_for_an_opcode(
    walk: Walker, ask: Callable[..., Any], demo_lake: Path
) -> None:
    files = duckdb.read_parquet(f"{demo_lake}/transactions/**/*.parquet")
    hashes = files.filter("descr = 'ord'").project("lower(hex(hash))").limit(60).fetchall()
    seen = 0
    for (tx_hash,) in hashes:
        message = ask("transactions", hash=tx_hash)["transactions"][0]["in_msg"]
        if message["source"] is None and message["decoded_opcode"] is None:
            words = walk(f"/transaction/{tx_hash}").words
            assert message["opcode"] not in words
            trace = walk(f"/trace/{tx_hash}").words
            assert message["opcode"] not in trace
            seen += 1
    assert seen > 5


def test_an_account_shows_all_that_it_has(walk: Walker, ask: Callable[..., Any]) -> None:
    wallet = ask("jetton/wallets", exclude_zero_balance="true", limit=1)["jetton_wallets"][0]
    path = f"/account/{wallet['owner']}"
    page = walk(path)
    state = ask("accountStates", address=wallet["owner"])["accounts"][0]
    assert f"{int(state['balance']) / 1e9:,.9f}".rstrip("0").rstrip(".") in page.words
    assert any(attrs.get("class") == "line" for _tag, attrs in page.tags)
    tokens = walk(path, show="tokens")
    assert any(link.startswith("/jetton/") for link in tokens.links)
    transactions = walk(path, show="transactions")
    hashes = [
        to_hex(each["hash"])
        for each in ask("transactions", account=wallet["owner"], limit=20)["transactions"]
    ]
    listed = [link for link in transactions.links if link.startswith("/transaction/")]
    assert [f"/transaction/{each}" for each in hashes] == listed[-len(hashes) :]


def test_an_account_that_never_existed_differs_from_an_unknown_one(
    walk: Walker, demo_node: Path, tmp_path: Path
) -> None:
    path = f"/account/0:{'AB' * 32}"
    assert "does not exist" in walk(path).words
    ingest_node(demo_node, tmp_path, Settings(), 100, 110)
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        later = Walker(client)
        assert "This account is not in the lake" in later(path).words
        assert "Not in the lake:" in later(path).words
        assert "Blocks before 100 are not in the lake" in later("/lake").words
        assert "this lake covers" in later("/block/-1:8000000000000000:5", status=404).words


def test_jettons_and_nfts(walk: Walker, ask: Callable[..., Any]) -> None:
    master = next(
        each for each in ask("jetton/masters")["jetton_masters"] if each["jetton_content"]
    )
    page = walk(f"/jetton/{master['address']}")
    assert master["jetton_content"]["symbol"] in page.words
    assert "%" in page.words
    for show in ("transfers", "burns"):
        assert "succeeded" in walk(f"/jetton/{master['address']}", show=show).words
    item = ask("nft/items", limit=1)["nft_items"][0]
    page = walk(f"/nft/{item['address']}")
    assert "Not fetched yet" in page.words
    assert "tonlake fetch-metadata" in page.words
    collection = next(link for link in page.links if link.startswith("/nft/"))
    assert "Items" in walk(collection).words
    walk(f"/nft/{master['address']}", status=404)
    walk(f"/jetton/{item['address']}", status=404)


def test_blocks_of_both_kinds(walk: Walker, ask: Callable[..., Any]) -> None:
    blocks = ask("blocks", limit=3, mc_seqno=100)["blocks"]
    assert {block["workchain"] for block in blocks} == {-1, 0}
    for block in blocks:
        page = walk(f"/block/{block['workchain']}:{block['shard']}:{block['seqno']}")
        assert to_hex(block["root_hash"]) in page.words
    walk("/block/-1:8000000000000000:9999", status=404)
    walk("/block/nothing", status=422)
    walk("/block/9999999999:8000000000000000:1", status=422)


def test_latest_blocks_go_back_to_the_first(walk: Walker) -> None:
    path = "/blocks"
    seen: list[int] = []
    while path:
        page = walk(path)
        seen += [
            int(link.rsplit(":", 1)[1])
            for link in page.links
            if link.startswith("/block/-1:8000000000000000:")
        ]
        older = [attrs["href"] for tag, attrs in page.tags if attrs.get("rel") == "next"]
        path = older[0] or "" if older else ""
    assert seen == list(range(238, 0, -1))


def test_rows_for_the_script_are_sent_once(client: TestClient[Any]) -> None:
    answer = client.get("/blocks/rows?limit=3")
    assert answer.text.count("<tr>") == 3
    again = client.get("/blocks/rows?limit=3", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_lake_in_figures(walk: Walker) -> None:
    page = walk("/lake")
    assert "No holes" in page.words
    for word in ("transactions", "account_states", "Snapshot", "Age of newest block"):
        assert word in page.words


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_remembered_without_a_script(demo_lake: Path, theme: str) -> None:
    with TestClient(create_app(demo_lake, PATIENT)) as client:
        form = {"theme": theme, "back": "/lake"}
        answer = client.post("/theme", data=form, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/lake")
        assert f'data-theme="{theme}"' in client.get("/lake").text


@pytest.mark.parametrize("back", ["https://evil.example", "//evil.example", "/\\evil", "x", ""])
def test_no_page_links_elsewhere(client: TestClient[Any], back: str) -> None:
    form = {"theme": "purple", "back": back}
    answer = client.post("/theme", data=form, follow_redirects=False)
    assert answer.headers["location"] == "/"
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/account/zz", 422, "not an address: 'zz'"),
        ("/transaction/zz", 422, "64 hex digits"),
        ("/trace/zz", 422, "64 hex digits"),
        (f"/transaction/{'0' * 64}", 404, "not found in this lake"),
        (f"/trace/{'0' * 64}", 404, "no trace"),
        (f"/account/0:{'0' * 64}?cursor=1", 422, "cursor"),
        ("/lake?snapshot=9", 404, "no such snapshot"),
    ],
)
def test_errors_are_pages_in_words(walk: Walker, path: str, status: int, words: str) -> None:
    assert words in walk(path, status=status).words


def test_a_lake_without_commits_says_so(tmp_path: Path) -> None:
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        page = Walker(client)("/", status=503)
        assert client.get("/").headers["retry-after"] == "1"
    assert all(text in page.words for text in ("no commit yet", "Try again"))
