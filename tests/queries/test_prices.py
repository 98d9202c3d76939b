"""The query ``everyday/prices``: hourly and daily prices equal those computed by hand."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.api.explorer.market import DAY, HOUR, TRADES, build_scene
from tests.api.v3.scene import make_raw
from tests.patience import patient
from tonlake.api.request.snapshot import SnapshotHolder

Ask = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Return the prices of cats, or of what the parameters name."""
    lake = build_scene().commit(tmp_path_factory.mktemp("market"))
    holder = SnapshotHolder(lake, patient(lake={"stablecoins": make_raw("dollar")}))

    def run(**parameters: object) -> list[dict[str, Any]]:
        wanted = {"jetton": make_raw("cat"), **parameters}
        return list(holder.reader().rows("everyday/prices", **wanted))

    yield run
    holder.close()


def count_utime(row: dict[str, Any]) -> int:
    """Return the Unix time of a row."""
    return int(row["time"].replace(tzinfo=UTC).timestamp())


def read_time(utime: int) -> datetime:
    """Return a time as the query takes it."""
    return datetime.fromtimestamp(utime, UTC).replace(tzinfo=None)


def test_hours(ask: Ask) -> None:
    rows = ask()
    assert [count_utime(row) for row in rows] == sorted(TRADES, reverse=True)
    for row in rows:
        prices = TRADES[count_utime(row)]
        expected = (prices[0], max(prices), min(prices), prices[-1])
        values = (row["open"], row["high"], row["low"], row["close"])
        assert values == pytest.approx(expected, rel=1e-6)
        assert row["symbol"] == "CAT"
        assert (row["volume_ton"], row["trades"], row["pools"]) == (30, 3, 1)
        assert row["volume"] == pytest.approx(sum(10 / price for price in prices), rel=1e-6)
    assert rows[2]["close_usd"] == pytest.approx(TRADES[HOUR][-1] * 3, rel=1e-6)
    assert [row["ton_usd"] for row in rows] == [None, None, pytest.approx(3)]


def test_days(ask: Ask) -> None:
    newest, first = ask(daily=True)
    assert (count_utime(newest), count_utime(first)) == (DAY + 86_400, DAY)
    values = [first[name] for name in ("open", "high", "low", "close", "volume_ton", "trades")]
    assert values == pytest.approx([0.5, 0.6, 0.47, 0.58, 60, 6], rel=1e-6)
    assert (newest["open"], newest["trades"]) == (pytest.approx(0.7, rel=1e-6), 3)


def test_ranges_and_pages(ask: Ask) -> None:
    assert [count_utime(row) for row in ask(end=read_time(HOUR + 3599))] == [HOUR]
    inside = ask(start=read_time(HOUR + 3601), end=read_time(HOUR + 7199))
    assert [count_utime(row) for row in inside] == [HOUR + 3600]
    assert [count_utime(row) for row in ask(limit=1, offset=1)] == [HOUR + 3600]
    assert {row["symbol"] for row in ask(jetton=None)} == {"CAT", "DOLLAR"}
    assert ask(jetton=make_raw("dog")) == []
