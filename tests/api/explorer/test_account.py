"""An account: its history with signs, days and filters, what it holds, and its QR code."""

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.explorer.market import build_scene, open_service
from tests.api.explorer.page import Page, to_hex
from tests.api.v3.scene import make_raw
from tonlake.api.explorer import account
from tonlake.api.explorer.account import QUIET, draw_code


@pytest.fixture(scope="module")
def busy(client: TestClient[Any]) -> str:
    """The account with most actions."""
    found = client.get("/api/v3/actions", params={"limit": 1000, "include_accounts": True}).json()
    counts = Counter(account for each in found["actions"] for account in each["accounts"])
    return str(counts.most_common(1)[0][0])


def walk(client: TestClient[Any], path: str) -> list[dict[str, str]]:
    """Return the rows of all sheets, from the first page of a history to the last."""
    rows: list[dict[str, str]] = []
    while path:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        page = Page(answer.text)
        sheet = client.get(next(link for link in page.links if "/history.csv" in link))
        assert sheet.headers["content-type"] == "text/csv; charset=utf-8"
        assert "attachment" in sheet.headers["content-disposition"]
        found = list(csv.DictReader(io.StringIO(sheet.text)))
        shown = [link for link in page.links if link.startswith("/trace/")]
        assert {f"/trace/{row['trace']}" for row in found} == set(shown)
        rows += found
        older = [attrs["href"] for tag, attrs in page.tags if tag == "a" and attrs.get("rel")]
        path = older[0] or "" if older else ""
    return rows


def test_both_sides_of_a_transfer_have_its_sign(
    client: TestClient[Any], transfer: dict[str, Any]
) -> None:
    details = transfer["details"]
    for side, sign, direction in (("sender", "-", "out"), ("receiver", "+", "in")):
        rows = walk(client, f"/account/{details[side]}?token={details['asset']}")
        row = next(row for row in rows if row["trace"] == to_hex(transfer["trace_id"]))
        assert (row["amount"][0], row["direction"]) == (sign, direction)
        assert row["asset_address"]


def test_a_message_of_two_actions_counts_once(
    client: TestClient[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    params: dict[str, Any] = {"action_type": "contract_deploy", "limit": 1000}
    deployed = client.get("/api/v3/actions", params=params).json()["actions"]
    params["action_type"] = "call_contract"
    called = client.get("/api/v3/actions", params=params).json()["actions"]
    by_transactions = {tuple(sorted(each["transactions"])): each for each in called}
    twins = [
        by_transactions[key]
        for each in deployed
        if (key := tuple(sorted(each["transactions"]))) in by_transactions and each["success"]
    ]
    assert twins
    monkeypatch.setattr(account, "ROWS", 1)  # the two stand on different pages
    for each in twins:
        rows = walk(client, f"/account/{each['details']['source']}")
        same = [row for row in rows if row["trace"] == to_hex(each["trace_id"])]
        amounts = Counter((row["type"], row["amount"]) for row in same if row["asset"] == "TON")
        assert [kind for kind, _ in amounts if kind == "contract_deploy"] == []
        assert ("contract_deploy", "") in {(row["type"], row["amount"]) for row in same}
        alone = walk(client, f"/account/{each['details']['source']}?type=contract_deploy")
        assert [row for row in alone if row["amount"] and row["trace"] == same[0]["trace"]]


@pytest.mark.parametrize("batch", [3, account.BATCH])
def test_filters_lose_nothing(
    client: TestClient[Any], busy: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "BATCH", batch)
    monkeypatch.setattr(account, "MAX_READ", 5 * batch)
    every = walk(client, f"/account/{busy}")
    assert len(every) > account.ROWS
    for name in ("in", "out", "both", "neither"):
        chosen = walk(client, f"/account/{busy}?direction={name}")
        assert chosen == [row for row in every if row["direction"] == name]
    kind = every[0]["type"]
    assert walk(client, f"/account/{busy}?type={kind}") == [
        row for row in every if row["type"] == kind
    ]


@pytest.mark.parametrize("kind", ["actions", "transactions"])
def test_a_full_last_page_links_to_none(
    client: TestClient[Any], busy: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    params: dict[str, Any] = {"account": busy, "limit": 1000}
    rows = len(client.get(f"/api/v3/{kind}", params=params).json()[kind])
    for limit, has_next in ((rows, False), (rows - 1, True)):
        monkeypatch.setattr(account, "ROWS", limit)
        page = client.get(f"/account/{busy}", params={"show": kind} if kind != "actions" else {})
        assert ('rel="next"' in page.text) == has_next


def test_days_bound_the_history(client: TestClient[Any], busy: str) -> None:
    every = walk(client, f"/account/{busy}")
    days = sorted({row["time"][:10] for row in every})
    page = Page(client.get(f"/account/{busy}").text)
    headings = [attrs["datetime"] for tag, attrs in page.tags if attrs.get("datetime") in days]
    assert headings[0] == days[-1]
    # Within a second, rows stand by hash where they are chosen by time.
    within = walk(client, f"/account/{busy}?first={days[0]}&last={days[-1]}")
    assert sorted(map(str, within)) == sorted(map(str, every))
    before = client.get(f"/account/{busy}?last=2001-01-01")
    assert before.status_code == 200
    assert "/trace/" not in before.text


@pytest.mark.parametrize(
    "query", ["direction=up", "token=x", "first=yesterday", "last=2026-13-01", "cursor=x"]
)
def test_a_wrong_filter_is_named(client: TestClient[Any], busy: str, query: str) -> None:
    for path in (f"/account/{busy}?{query}", f"/account/{busy}/history.csv?{query}"):
        answer = client.get(path)
        assert answer.status_code == 422
        assert query.partition("=")[0] in answer.text


def test_addresses_are_shown_in_full_on_demand(
    client: TestClient[Any], transfer: dict[str, Any]
) -> None:
    path = f"/account/{transfer['details']['sender']}"
    short, full = (client.get(f"{path}{end}").text for end in ("", "?full=1"))
    page = Page(full)
    assert "…" in Page(short).words.partition("History")[2]
    assert "…" not in page.words.partition("History")[2]
    kept = [link for link in page.links if "show=" in link]
    assert kept
    assert all("full=1" in link for link in kept)


def test_tons_and_jettons_have_a_value(tmp_path: Path) -> None:
    scene = build_scene()
    scene.put_state("wallets", "ann", 1, kind="wallet_v4r2")
    scene.rows["account_states"][-1]["balance"] = 1_500_000_000
    scene.rows["account_states"][-1]["extra_currencies"] = '{"239":"8000"}'
    scene.put_state("jetton_wallets", "purse", 1, owner="ann", jetton="dollar", balance=6_000_000)
    with open_service(scene.commit(tmp_path / "lake")) as client:
        page = Page(client.get(f"/account/{make_raw('ann')}?show=tokens").text)
        assert "CAT" in Page(client.get("/jettons").text).words.partition("Symbol")[2]
    assert "TON1.5 TON1.504.50" in "".join(page.words.splitlines())
    assert "extra currency 2398,000unknownunknown" in "".join(page.words.splitlines())
    assert "6 DOLLAR2.006.00" in "".join(page.words.splitlines())


def test_codes_have_finders_and_a_quiet_zone() -> None:
    code = draw_code(f"ton://transfer/{'A' * 48}")
    side = int(code.partition('viewBox="0 0 ')[2].partition(" ")[0])
    assert f'<path fill="#fff" d="M0 0h{side}v{side}' in code
    assert f'<path stroke="#000" d="M{QUIET} {QUIET}.5h7m' in code
    assert code != draw_code(f"ton://transfer/{'B' * 48}")
