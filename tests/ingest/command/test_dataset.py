"""``tonlake ingest --dataset``: days, reports, exit codes, and what is said of the rows."""

from pathlib import Path

import msgspec
import pytest
from litestar.testing import TestClient

from tests.commands import run
from tonlake.api.app import create_app
from tonlake.api.settings import Settings


def test_days_become_a_lake(dataset: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    done = run("ingest", "--dataset", dataset, "--days", "2026-11-21", "--lake", lake)
    assert done.exit_code == 0, done.output
    assert "2026-11-21:" in done.output
    assert "1,420 transactions" in done.output
    assert "not verified: 1..238" in run("status", "--lake", lake).output
    assert "no block proves their rows" in run("verify", "--lake", lake).output
    with TestClient(create_app(lake, Settings())) as client:
        answer = client.get("/api/v3/masterchainInfo")
        assert answer.status_code == 200
        assert "not verified" in answer.headers["x-tonlake-warning"]
        block = client.get("/api/v3/blocks", params={"workchain": -1, "seqno": 1}).json()
        assert block["blocks"][0]["prev_blocks"] == [
            {"workchain": -1, "shard": "8000000000000000", "seqno": 0}
        ]
        info = client.get("/api/v2/getMasterchainInfo").json()
        assert info["result"]["state_root_hash"] == ""


def test_a_missing_day_is_a_partial_result(dataset: Path, tmp_path: Path) -> None:
    arguments = ("--days", "2026-11-20..2026-11-21", "--lake", tmp_path / "lake", "--json")
    done = run("ingest", "--dataset", dataset, *arguments)
    assert done.exit_code == 3
    first, second = map(msgspec.json.decode, done.stdout.splitlines())
    assert (first["day"], first["ingest"]) == ("2026-11-20", None)
    assert first["lacking"] == ["blocks", "transactions", "messages", "account_states"]
    assert second["ingest"]["committed"] == ["1:238"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "needs --days"),
        (("--days", "yesterday"), "write a day"),
        (("--days", "2026-11-21", "--range", "1:2"), "takes no ranges"),
        (("--days", "2026-11-21", "--packs", "."), "name one source"),
    ],
)
def test_wrong_options_are_refused(
    dataset: Path, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = run("ingest", "--dataset", dataset, "--lake", tmp_path / "lake", *arguments)
    assert done.exit_code == 2
    assert words in done.output
    done = run("ingest", "--node", dataset, "--lake", tmp_path / "lake", "--days", "2026-11-21")
    assert "--days needs --dataset" in done.output
