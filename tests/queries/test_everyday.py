"""Everyday questions run without parameters and have the columns that are charted."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from tests.api.explorer.market import DAY, HOUR, TRADES, build_scene
from tests.api.v3.scene import Scene, make_raw
from tests.patience import patient
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.lake.errors import QueryError
from tonlake.queries.errors import ParameterMismatch, QueryMalformed
from tonlake.queries.loader import EVERYDAY, NamedQuery, find_query, load_queries, parse_query
from tonlake.queries.parameter import read_parameters
from tonlake.queries.reader import Reader

QUESTIONS = [query for query in load_queries().values() if query.name.startswith(EVERYDAY)]
CHART = "-- Days.\n-- chart: {}\n-- returns: date, n\nselect date, 1 as n from v_daily\n"


def test_there_are_twenty_everyday_questions() -> None:
    assert len(QUESTIONS) >= 20
    assert all(question.doc for question in QUESTIONS)
    assert sum(question.chart is not None for question in QUESTIONS) >= 15


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_question_runs_with_its_defaults(reader: Reader, question: NamedQuery) -> None:
    asked = reader.table(question.name)
    assert all(name in question.returns for name in asked.column_names)
    if question.chart is not None:
        drawn = {question.chart.x, *question.chart.y, question.chart.by or question.chart.x}
        assert drawn <= set(asked.column_names)


def test_a_value_that_no_row_has_is_refused(reader: Reader) -> None:
    with pytest.raises(QueryError, match="never 'STONFI'"):
        reader.table("everyday/dex_volume", dex="STONFI")
    assert not reader.table("everyday/dex_volume", dex="coffee").num_rows


@pytest.mark.parametrize("chart", ["pie x=date y=n", "line x=date", "line y=n x=date", "bar x=a"])
def test_a_chart_that_cannot_be_read_is_refused(chart: str) -> None:
    with pytest.raises(QueryMalformed, match="unreadable chart line"):
        parse_query("x/y", CHART.format(chart))


def test_a_chart_names_series() -> None:
    query = parse_query("x/y", CHART.format("bar x=date y=n,m by=pool"))
    assert query.chart is not None
    assert (query.chart.kind, query.chart.x, query.chart.y, query.chart.by) == (
        *("bar", "date", ("n", "m"), "pool"),
    )
    assert query.doc == "Days."


def test_times_and_addresses_are_read() -> None:
    holders = find_query("jetton_holders")
    elector = "Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF"
    values = read_parameters(holders, {"master": elector, "at": "2026-11-21T06:00:00+02:00"})
    assert values == {"master": "-1:" + "3" * 64, "at": datetime(2026, 11, 21, 4)}  # noqa: DTZ001
    days = read_parameters(find_query("active_wallets"), {"first": "2026-11-21", "last": "null"})
    assert days == {"first": date(2026, 11, 21), "last": None}
    for name, text in (("master", elector[:-1] + "G"), ("at", "yesterday")):
        with pytest.raises(ParameterMismatch, match=f"parameter {name}="):
            read_parameters(holders, {name: text})


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A jetton of unknown decimals goes to a bridge; bob came on the first day, ann on the next."""
    folder = tmp_path_factory.mktemp("flows")
    scene = Scene(1)
    ends = {"source": "ann", "destination": "bridge", "amount": 5}
    scene.put("jetton_transfers", account="wallet", mc_seqno=1, lt=101, jetton="dog", **ends)
    sent = {"direction": "in", "kind": "ext_in", "mc_seqno": 1}
    for at, name, day in ((1, "bob", 0), (2, "bob", 1), (3, "ann", 1), (4, "ann", 2)):
        now = DAY + 86_400 * day
        scene.put("messages", tx_account=name, destination=name, tx_lt=at, now=now, **sent)
    labels = folder / "labels.csv"
    labels.write_text(f"address,label,category,source\n{make_raw('bridge')},Bridge,bridge,test\n")
    settings = patient(lake={"labels": str(labels)})
    holder = SnapshotHolder(scene.commit(folder / "lake"), settings)
    yield holder.reader()
    holder.close()


def test_an_unknown_amount_is_not_zero(flows: Reader) -> None:
    [crossed] = flows.rows("everyday/bridge_flows")
    [moved] = flows.rows("everyday/wallet_report", account=make_raw("ann"))
    assert (crossed["transfers_in"], crossed["received"], crossed["sent"]) == (1, None, 0)
    assert (moved["transfers_out"], moved["received"], moved["sent"]) == (1, 0, None)


def test_the_first_day_is_of_the_lake(flows: Reader) -> None:
    day = datetime.fromtimestamp(DAY + 86_400, UTC).date()
    found = flows.rows("everyday/retention", first=day, last=day)
    assert [(row["first_day"] - day, row["day_number"], row["wallets"]) for row in found] == [
        (timedelta(), 0, 1),
        (timedelta(), 1, 1),
    ]


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
