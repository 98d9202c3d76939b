"""``/api/x/prices``: hourly and daily prices equal those computed by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from litestar.testing import TestClient

from tests.api.v3.scene import Scene, make_raw
from tests.patience import patient
from tonlake.api.app import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY = 1_700_006_400 // 86_400 * 86_400
HOUR = DAY + 36_000
PATH = "/api/x/prices"
TRADES = {HOUR: (0.5, 0.52, 0.47), HOUR + 3600: (0.6, 0.55, 0.58), HOUR + 86_400: (0.7, 0.7, 0.7)}
"""TON for one cat, in the order of the trades of an hour."""


def put_swap(scene: Scene, utime: int, jetton: str, units: int) -> None:
    """Add a swap of 10 TON for some of a jetton."""
    number = len(scene.rows["dex_swaps"])
    scene.put(
        "dex_swaps",
        trace_id="trace",
        action_id=f"swap {number}",
        mc_seqno=1,
        end_lt=number,
        end_utime=utime,
        success=True,
        dex="dedust",
        pool=make_raw(f"pool of {jetton}"),
        amount_in=10**10,
        asset_out=make_raw(jetton),
        amount_out=units,
        hops=1,
    )


def build_scene(*, classified: bool = True) -> Scene:
    """Return a market of cats and dollars, both with six decimals."""
    scene = Scene(2)
    for block, utime in zip(scene.rows["blocks"], (DAY, DAY + 200_000), strict=True):
        block["gen_utime"] = utime
    for jetton in ("cat", "dollar"):
        content = json.dumps({"symbol": jetton.upper(), "decimals": "6"})
        scene.put_state("jetton_masters", jetton, 1, content=content, total_supply=1)
    scene.put("interfaces", code_hash="code of jetton_masters", mc_seqno=1)
    for hour, prices in TRADES.items():
        for at, price in enumerate(prices):
            put_swap(scene, hour + 60 * at, "cat", round(10 / price * 1e6))
        if hour == HOUR:
            for _ in range(3):
                put_swap(scene, hour, "dollar", 30_000_000)
    put_swap(scene, HOUR + 500, "cat", 1)  # ten TON for a millionth of a cat
    if classified:
        scene.put("action_ranges", first_mc_seqno=1, last_mc_seqno=2)
    return scene


def open_service(lake: Path) -> TestClient[Any]:
    settings = patient(lake={"stablecoins": make_raw("dollar")})
    return TestClient(create_app(lake, settings))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient[Any]]:
    lake = build_scene().commit(tmp_path_factory.mktemp("market"))
    with open_service(lake) as client:
        yield client


def ask(service: TestClient[Any], **parameters: str | int) -> list[dict[str, Any]]:
    answer = service.get(PATH, params={"jetton_address": make_raw("cat"), **parameters})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["prices"]
    return found


def test_hours(service: TestClient[Any]) -> None:
    found = ask(service)
    assert [row["utime"] for row in found] == sorted(TRADES, reverse=True)
    for row in found:
        prices = TRADES[row["utime"]]
        expected = (prices[0], max(prices), min(prices), prices[-1])
        values = (row["open"], row["high"], row["low"], row["close"])
        assert values == pytest.approx(expected, rel=1e-6)
        assert (row["jetton"], row["symbol"]) == (make_raw("cat"), "CAT")
        assert (row["volume_ton"], row["trades"], row["pools"]) == (30, 3, 1)
        assert row["volume"] == pytest.approx(sum(10 / price for price in prices), rel=1e-6)
    assert found[2]["close_usd"] == pytest.approx(TRADES[HOUR][-1] * 3, rel=1e-6)
    assert [row["ton_usd"] for row in found] == [None, None, pytest.approx(3)]


def test_days(service: TestClient[Any]) -> None:
    newest, first = ask(service, interval="day")
    assert (newest["utime"], first["utime"]) == (DAY + 86_400, DAY)
    values = [first[name] for name in ("open", "high", "low", "close", "volume_ton", "trades")]
    assert values == pytest.approx([0.5, 0.6, 0.47, 0.58, 60, 6], rel=1e-6)
    assert (newest["open"], newest["trades"]) == (pytest.approx(0.7, rel=1e-6), 3)


def test_spans_and_pages(service: TestClient[Any]) -> None:
    assert [row["utime"] for row in ask(service, end_utime=HOUR + 3599)] == [HOUR]
    inside = ask(service, start_utime=HOUR + 3600 + 1, end_utime=HOUR + 7199)
    assert [row["utime"] for row in inside] == [HOUR + 3600]
    assert [row["utime"] for row in ask(service, limit=1, offset=1)] == [HOUR + 3600]
    every = service.get(PATH, params={"limit": 100}).json()
    assert {row["symbol"] for row in every["prices"]} == {"CAT", "DOLLAR"}
    assert set(every["metadata"]) == {make_raw("cat"), make_raw("dollar")}
    assert ask(service, jetton_address=make_raw("dog")) == []
    table = service.get(PATH, headers={"Accept": "text/csv"}).text.splitlines()
    assert (len(table), table[0].split(",")[0]) == (5, "jetton")


@pytest.mark.parametrize(
    ("parameters", "status", "words"),
    [
        ({"interval": "week"}, 422, 'error converting value for "interval"'),
        ({"jetton_address": "cat"}, 422, 'error converting value for "jetton_address"'),
        ({"start_utime": DAY + 10**6}, 404, "covers"),
        ({"limit": 10**6}, 422, "limit is not allowed"),
    ],
)
def test_wrong_questions_are_refused(
    service: TestClient[Any], parameters: dict[str, str | int], status: int, words: str
) -> None:
    answer = service.get(PATH, params=parameters)
    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text


def test_what_was_not_classified_is_not_without_trades(tmp_path: Path) -> None:
    scene = build_scene(classified=False)
    scene.rows["dex_swaps"].clear()
    with open_service(scene.commit(tmp_path)) as service:
        answer = service.get(PATH)
    assert answer.status_code == 503, answer.text
    assert "tonlake rebuild actions" in answer.json()["error"]


def test_it_is_described_as_our_own(service: TestClient[Any]) -> None:
    operation = service.get("/openapi.json").json()["paths"][PATH]["get"]
    assert (operation["tags"], operation["operationId"]) == (["x"], "x_get_prices")
    names = [each.get("name") for each in operation["parameters"]]
    assert {"jetton_address", "interval", "start_utime", "end_utime"} <= set(names)
