"""The lake's files over HTTP: which, to whom, whole or in part; and a lake pulled from them."""

import hashlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from litestar.testing import TestClient

from tests.commands import serving
from tests.patience import patient
from tonlake.api.access import add_key
from tonlake.api.app import create_app
from tonlake.api.publish import is_published
from tonlake.lake.copy.pull import copy_lake, open_pull
from tonlake.lake.errors import StorageError
from tonlake.lake.log.snapshot import Selection
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.verify import verify_lake

GIVE_UP_S = 120.0
OPEN: dict[str, Any] = {"access": {"publish": True}}


@pytest.fixture(scope="module")
def client(demo_lake: Path) -> Iterator[TestClient[Any]]:
    with TestClient(create_app(demo_lake, patient(**OPEN))) as asker:
        yield asker


def data_file(lake: Path) -> str:
    return max(read_state(lake).files, key=lambda file: file.bytes).path


def test_off_by_default(demo_lake: Path) -> None:
    with TestClient(create_app(demo_lake, patient())) as asker:
        answer = asker.get("/lake/_log/1.json")
    assert (answer.status_code, answer.json()) == (
        404,
        {"error": "unknown path: /lake/_log/1.json"},
    )


def test_every_file_of_the_newest_commit(client: TestClient[Any], demo_lake: Path) -> None:
    state = read_state(demo_lake)
    paths = [file.path for file in (*state.files, *state.segments)]
    paths += [f"_log/{number}.json" for number in range(1, state.number + 1)]
    for path in paths:
        answer = client.get(f"/lake/{path}")
        assert answer.status_code == 200
        assert answer.content == (demo_lake / path).read_bytes()
        assert answer.headers["content-length"] == str(len(answer.content))
        assert "immutable" in answer.headers["cache-control"]
        tag = answer.headers["etag"]
        assert hashlib.sha256(answer.content).hexdigest().startswith(tag[1:-1])
        again = client.get(f"/lake/{path}", headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("wanted", "status", "begin", "end"),
    [
        ("bytes=0-9", 206, 0, 10),
        ("bytes=100-", 206, 100, None),
        ("bytes=-7", 200, 0, None),
        ("bytes=5-99999999999", 206, 5, None),
        ("bytes=0-0", 206, 0, 1),
        ("bytes=5-4", 200, 0, None),
        ("bytes=99999999999-", 200, 0, None),
        ("bytes=0-1,4-5", 200, 0, None),
        ("lines=1-2", 200, 0, None),
        ("bytes=x", 200, 0, None),
    ],
)
def test_ranges(
    client: TestClient[Any], demo_lake: Path, wanted: str, status: int, begin: int, end: int | None
) -> None:
    path = data_file(demo_lake)
    data = (demo_lake / path).read_bytes()
    answer = client.get(f"/lake/{path}", headers={"Range": wanted})
    assert (answer.status_code, answer.content) == (status, data[begin:end])
    if status == 206:
        last = begin + len(answer.content) - 1
        assert answer.headers["content-range"] == f"bytes {begin}-{last}/{len(data)}"
        stale = client.get(f"/lake/{path}", headers={"Range": wanted, "If-Range": '"other"'})
        assert (stale.status_code, stale.content) == (200, data)


@pytest.mark.parametrize(
    "path",
    [
        *("_log/lock", "_log/queue", "_log/0.json", "_log/01.json", "_log/01.checkpoint.json"),
        *(
            "_follow.json",
            "views.sql",
            "catalog.duckdb",
            "../x",
            "_log/../../x",
            "blocks",
            "blocks/",
        ),
        *("blocks/.tmp-1-00", "x/day=2024-01-01/1-2-00.parquet", "blocks/1-2-00.run"),
        *("lookups/../1-2-00.run", "lookups/1-2-xx.run", "_pull/_log/1.json", "/etc/passwd"),
    ],
)
def test_nothing_else(client: TestClient[Any], demo_lake: Path, path: str) -> None:
    assert not is_published(path)
    assert client.get(f"/lake/{path}").status_code == 404
    assert client.get(f"/lake/{path}".replace(".", "%2e").replace("/", "%2f")).status_code == 404
    assert client.post("/lake/_log/1.json").status_code == 405
    assert demo_lake.is_dir()


def test_others_need_a_key(demo_lake: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    key = add_key(keys, "copy", 1000)
    access = {"publish": True, "keys_file": str(keys), "rate_limits": "off"}
    path = "/lake/_log/1.json"
    with TestClient(create_app(demo_lake, patient(access=access))) as asker:
        assert asker.get(path).status_code == 200
        passed_on = {"X-Forwarded-For": "203.0.113.5"}
        refused = asker.get(path, headers=passed_on)
        assert refused.status_code == 401
        assert "API key is required" in refused.json()["error"]
        assert asker.get(path, headers=passed_on | {"X-API-Key": key}).status_code == 200
    with TestClient(
        create_app(demo_lake, patient(access=access, http={"host": "0.0.0.0"}))  # noqa: S104
    ) as asker:
        assert asker.get(path).status_code == 401
        assert asker.get(path, headers={"X-API-Key": key}).status_code == 200
        assert asker.get("/api/v3/masterchainInfo").status_code == 200


def wait_for(url: str, server: subprocess.Popen[str]) -> httpx.Response:
    until_s = time.monotonic() + GIVE_UP_S
    while time.monotonic() < until_s and server.poll() is None:
        answer = httpx.get(url, timeout=GIVE_UP_S)
        if answer.status_code == 200:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"{url} does not answer")


def test_an_explorer_without_a_node(
    demo_lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One service publishes, with a key and limited rates, and another one pulls and serves."""
    keys, copy = tmp_path / "keys.json", tmp_path / "copy"
    key = add_key(keys, "copy", 20)
    monkeypatch.setenv("TONLAKE_ACCESS_PUBLISH", "true")
    monkeypatch.setenv("TONLAKE_ACCESS_KEYS_FILE", str(keys))
    monkeypatch.setenv("TONLAKE_ACCESS_RATE_LIMITS", "on")
    monkeypatch.setenv("TONLAKE_ACCESS_KEYS_REQUIRED", "true")
    with serving("--lake", demo_lake) as (base, source):
        wait_for(f"{base}/readyz", source)
        with (
            pytest.raises(StorageError, match=r"requires an API key: set \[pull\] key"),
            open_pull(f"{base}/lake", tmp_path / "refused"),
        ):
            pass
        for name in ("PUBLISH", "KEYS_FILE", "RATE_LIMITS", "KEYS_REQUIRED"):
            monkeypatch.delenv(f"TONLAKE_ACCESS_{name}")
        monkeypatch.setenv("TONLAKE_PULL_KEY", key)
        with serving("--lake", copy, "--pull", f"{base}/lake") as (ours, server):
            ready = wait_for(f"{ours}/readyz", server).json()
            assert ready["snapshot"] == read_state(demo_lake).number
            assert ready["lag"]["lag_s"] < GIVE_UP_S
            found = wait_for(f"{ours}/api/v3/transactions?limit=2", server).json()
            assert len(found["transactions"]) == 2
            assert wait_for(f"{ours}/", server).text.startswith("<!doctype html>")
    assert read_state(copy) == read_state(demo_lake)
    assert verify_lake(copy).damage == []


def test_a_copy_without_tables_says_what_it_lacks(demo_lake: Path, tmp_path: Path) -> None:
    tables = ("account_states", "blocks", "messages", "state_cells", "transactions")
    copy_lake(demo_lake, tmp_path / "copy", Selection(tables=tables))
    with TestClient(create_app(tmp_path / "copy", patient())) as asker:
        assert asker.get("/api/v3/masterchainInfo").status_code == 200
        assert len(asker.get("/api/v3/blocks?limit=3").json()["blocks"]) == 3
        for path, table in {
            "jetton/masters": "interfaces",
            "nft/items": "interfaces",
            "traces?limit=3": "traces",
        }.items():
            answer = asker.get(f"/api/v3/{path}")
            assert answer.status_code == 503
            assert f"a copy without the table {table}" in answer.json()["error"]
            assert "a copy without the tables" in answer.headers["X-Tonlake-Warning"]
        assert "tonlake_lake_damaged_tables 0.0" in asker.get("/metrics").text
