"""Snapshots of a growing lake: the newest is served, an older one can be requested."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

import tonlake.api.request.snapshot
from tests.ingest.whole import ingest_node
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.settings import Settings
from tonlake.lake.errors import LakeCorrupt, LakeNotFound, SnapshotNotFound
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.digest import Recheck
from tonlake.lake.log.snapshot import open_snapshot


@pytest.fixture
def grow(demo_node: Path, tmp_path: Path) -> Callable[[int, int], None]:
    """Ingest a range of the demo node's masterchain blocks into ``tmp_path``, as one commit."""

    def add(first: int, last: int) -> None:
        ingest_node(demo_node, tmp_path, Settings(), first, last)

    return add


@pytest.fixture(autouse=True)
def _look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tonlake.api.request.snapshot, "LOOK_EVERY_S", 0.0)


def test_a_lake_without_commits_is_not_found(tmp_path: Path) -> None:
    holder = SnapshotHolder(tmp_path, PATIENT)
    with pytest.raises(LakeNotFound):
        holder.reader()
    with pytest.raises(LakeNotFound):
        holder.reader(1)


def test_the_newest_snapshot_is_seen_and_an_older_one_pinned(
    tmp_path: Path, grow: Callable[[int, int], None]
) -> None:
    holder = SnapshotHolder(tmp_path, PATIENT)
    grow(1, 3)
    first = holder.reader()
    assert first.snapshot.ranges == ((1, 3),)
    grow(4, 6)
    assert holder.reader().snapshot.ranges == ((1, 6),)
    assert holder.reader(1).snapshot.ranges == ((1, 3),)
    assert holder.reader(1).snapshot is first.snapshot
    with pytest.raises(SnapshotNotFound):
        holder.reader(3)
    with pytest.raises(SnapshotNotFound):
        holder.reader(0)
    assert len(first.rows("v3/blocks", mc_seqno=4, limit=10)) == 0


def test_old_snapshots_are_let_go(
    tmp_path: Path, grow: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tonlake.api.request.snapshot, "KEPT_SNAPSHOTS", 1)
    holder = SnapshotHolder(tmp_path, PATIENT)
    grow(1, 1)
    first = holder.reader().snapshot
    grow(2, 2)
    holder.reader()
    assert holder.reader(1).snapshot is not first


def test_many_threads_share_one_opening(
    tmp_path: Path, grow: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(1, 2)
    opened: list[int] = []
    real = open_snapshot

    def count(*given: Any, **named: Any) -> Any:
        snapshot = real(*given, **named)
        opened.append(snapshot.number)
        return snapshot

    monkeypatch.setattr(tonlake.api.request.snapshot, "open_snapshot", count)
    holder = SnapshotHolder(tmp_path, PATIENT)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(holder.reader().snapshot.number))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (opened, found) == ([1], [1] * 8)


def test_an_answer_names_its_snapshot(tmp_path: Path, grow: Callable[[int, int], None]) -> None:
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        empty = client.get("/api/v3/masterchainInfo")
        assert (empty.status_code, empty.headers["retry-after"]) == (503, "1")
        assert empty.json() == {"error": "the lake has no commit yet; ingest something first"}
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").text == "OK"
        grow(1, 3)
        before = client.get("/api/v3/masterchainInfo")
        assert before.headers["x-tonlake-snapshot"] == "1:3"
        grow(4, 5)
        assert client.get("/api/v3/masterchainInfo").json()["last"]["seqno"] == 5
        pinned = client.get("/api/v3/masterchainInfo?snapshot=1")
        assert (pinned.headers["x-tonlake-snapshot"], pinned.content) == ("1:3", before.content)
        assert client.get("/api/v3/masterchainInfo?snapshot=9").status_code == 404
        assert client.get("/api/v3/masterchainInfo?snapshot=x").status_code == 422


def test_an_answer_kept_does_not_outlive_a_commit(
    tmp_path: Path, grow: Callable[[int, int], None]
) -> None:
    grow(1, 3)
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        for first, last in ((4, 6), (7, 8)):
            for _ in range(2):
                assert client.get("/api/v3/masterchainInfo").json()["last"]["seqno"] == first - 1
                pinned = client.get("/api/v3/masterchainInfo?snapshot=1")
                assert pinned.headers["x-tonlake-snapshot"] == "1:3"
            grow(first, last)
        assert client.get("/api/v3/masterchainInfo").json()["last"]["seqno"] == 8


def test_holes_are_named(tmp_path: Path, grow: Callable[[int, int], None]) -> None:
    grow(1, 3)
    grow(7, 9)
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        hole = client.get("/api/v3/transactions?mc_seqno=5")
        assert hole.status_code == 404
        assert hole.json() == {
            "error": "masterchain block 5 not found; this lake covers 1..3, 7..9"
        }
        lt = client.get("/api/v3/transactions?start_lt=3900000&end_lt=3900001")
        assert lt.status_code == 404
        assert "this lake covers" in lt.json()["error"]
        assert client.get("/api/v3/masterchainBlockShards?seqno=7").status_code == 200
        info = client.get("/api/v3/masterchainInfo")
        assert info.json()["first"]["seqno"] == 1
        assert info.headers["x-tonlake-warning"] == (
            "this lake has holes, it covers masterchain 1..3, 7..9"
        )
        ready = client.get("/readyz").json()
        assert (ready["snapshot"], ready["masterchain_ranges"]) == (2, [[1, 3], [7, 9]])
        assert (ready["lag"]["holes"], ready["lag"]["lag_s"]) == (3, None)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def test_an_open_segment_that_is_written_to_is_withdrawn(
    tmp_path: Path, grow: Callable[[int, int], None], caplog: pytest.LogCaptureFixture
) -> None:
    grow(1, 3)
    rebuild_index(tmp_path)
    holder = SnapshotHolder(tmp_path, PATIENT)
    [segment] = holder.reader().snapshot.segments
    _flip(tmp_path / segment.path)
    time.sleep(0.1)  # files are compared in a part of the time only
    assert holder.reader().snapshot.segments == ()
    assert segment.path in caplog.text


def test_damage_is_logged_once(
    tmp_path: Path, grow: Callable[[int, int], None], caplog: pytest.LogCaptureFixture
) -> None:
    grow(1, 3)
    rebuild_index(tmp_path)
    [segment], files = open_snapshot(tmp_path).segments, open_snapshot(tmp_path).files
    paths = segment.path, files["messages"][0].path
    for path in paths:
        _flip(tmp_path / path)
    SnapshotHolder(tmp_path, PATIENT).reader()
    assert sorted(path for path in paths for text in caplog.messages if path in text) == [*paths]
    entry = tmp_path / "_log" / "3.json"
    entry.write_text("{")
    holder = SnapshotHolder(tmp_path, PATIENT)
    for _ in range(3):
        with pytest.raises(LakeCorrupt):
            holder.reader()
    assert [text.count("_log/3.json") for text in caplog.messages].count(1) == 1


def test_what_a_recheck_finds_is_withdrawn(
    tmp_path: Path, grow: Callable[[int, int], None]
) -> None:
    grow(1, 3)
    holder = SnapshotHolder(tmp_path, PATIENT)
    opened = holder.reader().snapshot
    _flip(tmp_path / opened.files["messages"][0].path)
    assert holder.reader().snapshot is opened
    for _ in Recheck(holder.latest, 1.0).check_round():
        pass
    assert set(holder.reader().snapshot.damaged) == {"messages"}
