"""Get-methods over time, compared with single runs on the same states."""

import json
from pathlib import Path
from unittest import mock

import pytest

import tonlake
from tests.ingest.whole import ingest_node
from tonlake.api.chain.run import run_on_state
from tonlake.api.errors import RequestInvalid
from tonlake.api.python import history
from tonlake.api.settings import Settings
from tonlake.api.text.encoding import encode_v3
from tonlake.lake.errors import QueryError

pytestmark = pytest.mark.usefixtures("tvm")
MASTERS = "select distinct ton_address(workchain, account) from jetton_masters order by all"


@pytest.fixture(scope="module")
def masters(lake: tonlake.Lake) -> list[str]:
    return [name for (name,) in lake.sql(MASTERS).fetchall()]


def test_every_row_is_what_a_run_on_that_state_gives(
    lake: tonlake.Lake, masters: list[str]
) -> None:
    found = lake.get_method_history(masters, "get_jetton_data", every="2 minutes")
    rows = found.arrow().to_pylist()
    assert {row["account"] for row in rows} == set(masters)
    assert {row["exit_code"] for row in rows} == {0, -13}
    for row in rows:
        account = lake.account(row["account"])
        state = account.state(row["mc_seqno"])
        assert state.time.replace(tzinfo=None) <= row["time"]
        ended = account.run("get_jetton_data", seqno=row["mc_seqno"])
        assert ended.exit_code == row["exit_code"]
        if state.code_hash is None:
            assert row["stack"] is None
        else:
            assert json.loads(row["stack"]) == [encode_v3(value) for value in ended.stack]
    seqnos = [row["mc_seqno"] for row in rows if row["account"] == masters[0]]
    assert seqnos == sorted(seqnos)
    assert seqnos[0] == 1


def test_in_sql_and_of_one_account(lake: tonlake.Lake, masters: list[str]) -> None:
    asked = "from get_method_history($accounts, 'get_jetton_data', every := interval 2 minute)"
    by_sql = lake.sql(f"{asked} order by account, time", accounts=masters)
    whole = lake.get_method_history(masters, "get_jetton_data", every="2 minutes")
    assert by_sql.fetchall() == sorted(whole.fetchall())
    one = lake.account(masters[0]).history("get_jetton_data", every="2 minutes")
    single = lake.sql(asked, accounts=masters[0])
    assert single.fetchall() == one.fetchall() == whole.fetchall()[: len(one)]


def test_a_time_in_a_hole_has_no_state(
    lake: tonlake.Lake, masters: list[str], demo_node: Path, tmp_path: Path
) -> None:
    """The last block before a hole may not be the last one up to a time."""
    last = lake.sql("select max(mc_seqno) from blocks").fetchall()[0][0]
    before, after = last // 2, last // 2 + 9
    for ends in ((1, before), (after, last)):
        ingest_node(demo_node, tmp_path, Settings(), *ends)
    every = {"every": "1 second"}
    whole = lake.account(masters[0]).history("get_jetton_data", **every).arrow().to_pylist()
    account = tonlake.open(tmp_path).account(masters[0])
    holed = account.history("get_jetton_data", **every).arrow().to_pylist()
    assert {row["time"] for row in holed} == {row["time"] for row in whole}
    for row, known in zip(holed, whole, strict=True):
        if known["mc_seqno"] in range(before, after):
            assert row["mc_seqno"] == before
            assert "this time may lie in between" in row["error"]
        elif known["mc_seqno"] < before:
            assert row == known


def test_a_state_runs_once(lake: tonlake.Lake, masters: list[str]) -> None:
    with mock.patch.object(history, "run_on_state", wraps=run_on_state) as run:
        found = lake.account(masters[0]).history("get_jetton_data", every="10 seconds")
    assert len(found) > 20
    account = lake.account(masters[0])
    seqnos = set(found.arrow()["mc_seqno"].to_pylist())
    states = {(state.code_hash, state.data_hash) for state in map(account.state, sorted(seqnos))}
    assert run.call_count == len(states)


def test_bounds(lake: tonlake.Lake, masters: list[str]) -> None:
    before = lake.account(masters[0]).history(
        "get_jetton_data", first="2001-01-01", last="2001-02-01"
    )
    assert len(before) == 0
    with (
        mock.patch.object(history, "MAX_POINTS", 10),
        pytest.raises(RequestInvalid, match="are more than 10"),
    ):
        lake.get_method_history(masters, "get_jetton_data", every="1 second")
    for every in ("0 hours", "-1 hour"):
        with pytest.raises(QueryError, match=f"every is not a positive interval: {every}"):
            lake.get_method_history(masters, "get_jetton_data", every=every)
