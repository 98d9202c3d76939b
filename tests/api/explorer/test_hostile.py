"""Names, comments and contents written by strangers are shown as plain text."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.v3.market import build_market
from tests.api.v3.scene import make_id, make_raw
from tests.patience import PATIENT
from tonlake.api.app import create_app

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
TEMPLATE = "{{ 7 * 191 }}{% raw %}"
TURNED = "\u202egpj.exe\u2066\u200f"
TRACE = make_id("trace")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient[Any]]:
    """Ask a lake in which every text is an attack."""
    scene = build_market()
    evil = json.dumps(
        {
            "name": SCRIPT,
            "symbol": IMAGE,
            "description": TEMPLATE + TURNED,
            "image": "javascript:alert(1)",
        }
    )
    for table, name in (("jetton_masters", "gold"), ("nft_collections", "birds")):
        row = dict(next(each for each in scene.rows[table] if each["account"] == make_id(name)))
        row |= {"mc_seqno": 5, "lt": 501, "content": evil}
        scene.rows[table].append(row)
    scene.put_state(
        "dns_records",
        "evil",
        5,
        code="item code",
        domain=f"{SCRIPT}.ton",
        owner="bob",
        wallet="bob",
        collection="root",
    )
    action: dict[str, Any] = {
        "trace_id": "trace",
        "action_id": "action",
        "type": "ton_transfer",
        "success": True,
        "mc_seqno": 5,
        "end_lt": 505,
        "end_utime": 1005,
        "trace_end_lt": 505,
        "trace_end_utime": 1005,
    }
    comment = {"ton_transfer_data": {"content": SCRIPT + IMAGE + TEMPLATE, "encrypted": False}}
    scene.put(
        "actions",
        **action,
        accounts=[make_raw("ann"), make_raw("bob")],
        source=make_raw("ann"),
        destination=make_raw("bob"),
        value=5,
        details=json.dumps(comment),
    )
    del action["success"], action["trace_end_utime"]
    scene.put("action_accounts", account="ann", **action, trace_end_utime=1005)
    scene.put("action_ranges", first_mc_seqno=1, last_mc_seqno=6, actions=1, traces=1)
    lake_dir: Path = scene.commit(tmp_path_factory.mktemp("hostile") / "lake")
    with TestClient(create_app(lake_dir, PATIENT)) as asker:
        yield asker


PATHS = [
    "/",
    f"/account/{make_raw('ann')}",
    f"/account/{make_raw('ann')}?show=tokens",
    f"/account/{make_raw('bob')}?show=tokens",
    f"/account/{make_raw('bob')}?show=nfts",
    f"/account/{make_raw('gold')}",
    f"/jetton/{make_raw('gold')}",
    f"/jetton/{make_raw('gold')}?show=transfers",
    f"/jetton/{make_raw('gold')}?show={SCRIPT}",
    f"/nft/{make_raw('birds')}",
    f"/nft/{make_raw('bird 9')}",
    f"/search?q={SCRIPT}",
    f"/search?q={TEMPLATE}",
    f"/account/{IMAGE}",
    "/block/<script>",
]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_hostile_becomes_markup(client: TestClient[Any], path: str) -> None:
    text = client.get(path).text
    assert "<html" in text
    for attack in ("<script>", "<img src=x", 'javascript:alert(1)"', "1337"):
        assert attack not in text, attack


def test_the_texts_are_there_as_text(client: TestClient[Any]) -> None:
    escaped = "&lt;script&gt;alert(1)&lt;/script&gt;"
    for path in (PATHS[0], PATHS[1], PATHS[6], PATHS[9], PATHS[11]):
        assert escaped in client.get(path).text, path
    assert "{{ 7 * 191 }}" in client.get(PATHS[6]).text


def test_marks_of_direction_are_shown(client: TestClient[Any]) -> None:
    text = client.get(PATHS[6]).text
    assert "[U+202E]gpj.exe[U+2066][U+200F]" in text
    for path in PATHS:
        assert not set(client.get(path).text) & set(TURNED[0] + TURNED[-2:]), path
    searched = client.get("/search", params={"q": TURNED}).text
    assert "[U+202E]gpj.exe" in searched


def test_a_traces_page_without_the_trace(client: TestClient[Any]) -> None:
    assert client.get(f"/trace/{TRACE.hex()}").status_code == 404
