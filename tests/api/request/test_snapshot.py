"""Snapshots of a growing lake: the newest is served, an older one can be requested."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from litestar.testing import TestClient

from tests.api.test_damage import spoil
from tests.ingest.whole import ingest_node
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.request import snapshot as holding
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.settings import Settings
from tonlake.lake.duck.connection import Engine
from tonlake.lake.errors import LakeCorrupt, LakeNotFound, SnapshotNotFound
from tonlake.lake.index import cells
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.digest import Recheck
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.queries.reader import Reader

Grow = Callable[[int, int], None]


@pytest.fixture
def grow(demo_node: Path, tmp_path: Path) -> Grow:
    """Ingest a range of the demo node's masterchain blocks into ``tmp_path``, as one commit."""

    def add(first: int, last: int) -> None:
        ingest_node(demo_node, tmp_path, Settings(), first, last)

    return add


@pytest.fixture(autouse=True)
def _look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "LOOK_EVERY_S", 0.0)


@pytest.fixture
def holder(tmp_path: Path) -> SnapshotHolder:
    return SnapshotHolder(tmp_path, PATIENT)


def test_a_lake_without_commits_is_not_found(holder: SnapshotHolder) -> None:
    for number in (None, 1):
        with pytest.raises(LakeNotFound):
            holder.reader(number)


def test_the_newest_snapshot_is_seen_and_an_older_one_pinned(tmp_path: Path, grow: Grow) -> None:
    holder = SnapshotHolder(tmp_path, PATIENT)
    grow(1, 3)
    first = holder.reader()
    assert first.snapshot.ranges == ((1, 3),)
    grow(4, 6)
    assert holder.reader().snapshot.ranges == ((1, 6),)
    assert holder.reader(1).snapshot.ranges == ((1, 3),)
    assert holder.reader(1).snapshot is first.snapshot
    for number in (3, 0):
        with pytest.raises(SnapshotNotFound):
            holder.reader(number)
    assert len(first.rows("v3/blocks", mc_seqno=4, limit=10)) == 0


def test_old_snapshots_are_let_go(
    holder: SnapshotHolder, grow: Grow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "KEPT_SNAPSHOTS", 2)
    monkeypatch.setattr(holding, "RETURNED_AFTER", 3)
    monkeypatch.setattr(holding, "return_memory", returned := mock.Mock())
    opened = []
    for at in (1, 2, 3):
        grow(at, at)
        opened += [holder.reader().snapshot, holder.reader(1).snapshot]
    assert opened[1] is opened[3] is opened[5]  # requests still name it
    returned.assert_called_once_with()
    assert holder.reader(2).snapshot is not opened[2]


def test_commits_are_opened_ahead_while_requests_come(
    holder: SnapshotHolder, grow: Grow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "ATTENTION_S", 60.0)
    grow(1, 1)
    holder.open_ahead()
    assert holder.latest() is None
    holder.expect()
    holder.reader().table("v3/blocks", limit=9)
    assert holder.reader().rows("cells", hashes=[bytes(32)]) == []
    before = holder.reader().lasting_rows("v3/action_ranges")
    grow(2, 2)
    holder.open_ahead()
    with monkeypatch.context() as patch:
        patch.setattr(SnapshotHolder, "_connect", lambda *_: pytest.fail("it is not open"))
        patch.setattr(Engine, "make_views", lambda *_: pytest.fail("its views are not there"))
        patch.setattr(cells, "read_rows", lambda *_: pytest.fail("its cells are not read"))
        reader = holder.reader()
        assert reader.rows("cells", hashes=[bytes(32)]) == []
        assert {*reader.table("v3/blocks", limit=9)["mc_seqno"].to_pylist()} == {1, 2}
        assert len(reader.lasting_rows("v3/action_ranges")) == len(before) + 1
    grow(3, 3)
    with monkeypatch.context() as patch:
        patch.setattr(holding, "open_snapshot", mock.Mock(side_effect=OSError("no room")))
        holder.open_ahead()  # logs it
        with pytest.raises(OSError, match="no room"):
            holder.reader()
    monkeypatch.setattr(holding, "ATTENTION_S", 0.0)
    holder.open_ahead()
    assert holder.newest_open() is None
    assert holder.reader().snapshot.number == 3


def test_requests_use_the_previous_snapshot_while_a_commit_is_opened(
    holder: SnapshotHolder, grow: Grow, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(1, 1)
    holder.reader()
    grow(2, 2)
    begun, may_end = threading.Event(), threading.Event()

    def open_slowly(*given: Any, **named: Any) -> Snapshot:
        begun.set()
        may_end.wait()
        return open_snapshot(*given, **named)

    monkeypatch.setattr(holding, "open_snapshot", open_slowly)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(holder.reader)
        begun.wait()
        assert (holder.newest_open(), holder.reader().snapshot.number) == (1, 1)
        patient = threads.submit(holder.reader, waits=True)
        may_end.set()
        assert (first.result().snapshot.number, patient.result().snapshot.number) == (2, 2)


def test_many_threads_share_one_opening(
    holder: SnapshotHolder, grow: Grow, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(1, 2)
    opening = mock.Mock(wraps=open_snapshot)
    monkeypatch.setattr(holding, "open_snapshot", opening)
    with ThreadPoolExecutor(8) as threads:
        assert [*threads.map(lambda _: holder.reader().snapshot.number, range(8))] == [1] * 8
    assert opening.call_count == 1


def test_requests_use_the_previous_snapshot_until_the_next_is_prepared(
    holder: SnapshotHolder, grow: Grow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "AHEAD_S", 60.0)
    holder.is_opened_ahead = True
    grow(1, 1)
    assert (holder.newest_open(), holder.reader().snapshot.number) == (None, 1)
    holder.expect()
    holder.open_ahead()
    seen: list[int | None] = []
    for number in (2, 3):
        grow(number, number)
        assert (holder.newest_open(), holder.reader().snapshot.number) == (number - 1, number - 1)
        with monkeypatch.context() as patch:
            patch.setattr(Reader, "repeat_lasting", lambda *_: seen.append(holder.newest_open()))
            holder.open_ahead()
        assert (seen.pop(), holder.newest_open()) == (number - 1, number)
    monkeypatch.setattr(holding, "ATTENTION_S", 0.0)
    grow(4, 4)
    assert holder.newest_open() == 3
    holder.open_ahead()  # no request came lately: events need the snapshot nevertheless
    assert (holder.newest_open(), holder.reader().snapshot.number) == (None, 4)


def test_an_answer_names_its_snapshot(tmp_path: Path, grow: Grow) -> None:
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        empty = client.get("/api/v3/masterchainInfo")
        assert (empty.status_code, empty.headers["retry-after"]) == (503, "1")
        assert empty.json() == {"error": "the lake has no commit yet; ingest something first"}
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").text == "OK"
        for number, (first, last) in enumerate(((1, 3), (4, 5), (6, 8)), 1):
            grow(first, last)
            while client.get("/api/v3/masterchainInfo").json()["last"]["seqno"] < last:
                time.sleep(0.01)  # it is being opened
            for _ in range(2):  # an answer that is kept does not outlive a commit
                newest = client.get("/api/v3/masterchainInfo")
                assert newest.json()["last"]["seqno"] == last
                assert newest.headers["x-tonlake-snapshot"] == f"{number}:{last}"
                pinned = client.get("/api/v3/masterchainInfo?snapshot=1")
                assert pinned.headers["x-tonlake-snapshot"] == "1:3"
                assert (pinned.content == newest.content) == (number == 1)
        assert client.get("/api/v3/masterchainInfo?snapshot=9").status_code == 404
        assert client.get("/api/v3/masterchainInfo?snapshot=x").status_code == 422


def test_a_service_is_not_ready_while_its_lake_is_gone(tmp_path: Path, grow: Grow) -> None:
    """Pages that need no file still answer, from the snapshot that is open."""
    grow(1, 3)
    log, away = tmp_path / "_log", tmp_path / "away"
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        assert client.get("/readyz").status_code == 200
        log.rename(away)
        refused = client.get("/readyz")
        assert (refused.status_code, "no _log/1.json any more" in refused.text) == (503, True)
        away.rename(log)
        assert client.get("/readyz").status_code == 200


def test_holes_are_named(tmp_path: Path, grow: Grow) -> None:
    grow(1, 3)
    grow(7, 9)
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        hole = client.get("/api/v3/transactions?mc_seqno=5")
        text = "masterchain block 5 not found; this lake covers 1..3, 7..9"
        assert (hole.status_code, hole.json()) == (404, {"error": text})
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


def test_an_open_segment_that_is_written_to_is_withdrawn(
    holder: SnapshotHolder, tmp_path: Path, grow: Grow, caplog: pytest.LogCaptureFixture
) -> None:
    grow(1, 3)
    rebuild_index(tmp_path)
    [segment] = holder.reader().snapshot.segments
    spoil(tmp_path, segment.path, 0.5)
    time.sleep(0.1)  # files are compared in a part of the time only
    assert holder.reader().snapshot.segments == ()
    assert segment.path in caplog.text


def test_damage_is_logged_once(
    holder: SnapshotHolder, tmp_path: Path, grow: Grow, caplog: pytest.LogCaptureFixture
) -> None:
    grow(1, 3)
    rebuild_index(tmp_path)
    [segment], files = open_snapshot(tmp_path).segments, open_snapshot(tmp_path).files
    paths = segment.path, files["messages"][0].path
    for path in paths:
        spoil(tmp_path, path, 0.5)
    SnapshotHolder(tmp_path, PATIENT).reader()
    assert sorted(path for path in paths for text in caplog.messages if path in text) == [*paths]
    entry = tmp_path / "_log" / "3.json"
    entry.write_text("{")
    for _ in range(3):
        with pytest.raises(LakeCorrupt):
            holder.reader()
    assert [text.count("_log/3.json") for text in caplog.messages].count(1) == 1


def test_what_a_recheck_finds_is_withdrawn(tmp_path: Path, grow: Grow) -> None:
    grow(1, 3)
    holder = SnapshotHolder(tmp_path, PATIENT)
    opened = holder.reader().snapshot
    spoil(tmp_path, opened.files["messages"][0].path, 0.5)
    assert holder.reader().snapshot is opened
    assert [*Recheck(holder.latest, 1.0).check_round()]
    assert set(holder.reader().snapshot.damaged) == {"messages"}
