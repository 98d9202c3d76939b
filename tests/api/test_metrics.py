"""Prometheus metrics: every figure has its source, and no label comes from a client."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from litestar.testing import TestClient
from prometheus_client.parser import text_string_to_metric_families

from tests.clock import Clock
from tests.patience import PATIENT, compose
from tonlake.api.app import create_app
from tonlake.api.metrics import REQUESTS, Meter, configure_logs
from tonlake.api.settings import LogSettings
from tonlake.lake.log.following import Following, write_following

INFO = "/api/v3/masterchainInfo"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def fresh(demo_lake: Path) -> Iterator[TestClient[Any]]:
    with TestClient(create_app(demo_lake, PATIENT), raise_server_exceptions=False) as client:
        yield client


def read(client: TestClient[Any]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return every sample by its name and labels."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_the_lake_is_shown(fresh: TestClient[Any], demo_lake: Path) -> None:
    samples = read(fresh)
    assert samples["tonlake_lake_ready", ()] == 1
    assert samples["tonlake_lake_last_mc_seqno", ()] == 238
    assert samples["tonlake_lake_commits_total", ()] == 1
    assert samples["tonlake_lake_holes", ()] == 0
    for table in ("blocks", "transactions", "messages"):
        on_disk = sum(path.stat().st_size for path in demo_lake.glob(f"{table}/**/*.parquet"))
        assert samples["tonlake_lake_table_bytes", (("table", table),)] == on_disk > 0
    assert ("tonlake_lake_lag_seconds", ()) not in samples


def test_requests_and_queries_are_counted(fresh: TestClient[Any]) -> None:
    for _ in range(3):
        assert fresh.get(INFO).status_code == 200
    assert fresh.get("/api/v3/blocks?limit=x").status_code == 422
    assert fresh.get("/api/v3/blocks?limit=1&sort=asc").status_code == 200
    samples = read(fresh)

    def count(route: str, status: str) -> float:
        labels = (("method", "GET"), ("route", route), ("status", status))
        return samples["tonlake_requests_total", labels]

    assert count(INFO, "200") == 3
    assert count("/api/v3/blocks", "422") == 1
    assert samples["tonlake_request_seconds_count", (("route", INFO),)] == 3
    assert samples["tonlake_answer_cache_hits_total", ()] == 2
    assert samples["tonlake_requests_in_flight", ()] == 1  # this one
    asked = {
        dict(labels)["query"]: value
        for (name, labels), value in samples.items()
        if name == "tonlake_queries_total"
    }
    assert asked
    assert all(value >= 1 for value in asked.values())
    assert all(name.startswith("v3/") for name in asked)


def test_no_label_comes_from_a_client(fresh: TestClient[Any]) -> None:
    paths = ["/secret-path", "/api/v3/secret-path", "/api/v2/secret-path", "/account/secret-path"]
    for path in paths:
        fresh.get(path, params={"secret-path": "1"})
        fresh.request("SECRET", path)
        fresh.request("DELETE", path)
    fresh.get("/explorer/../secret-path")
    assert "secret" not in fresh.get("/metrics").text.lower()


def test_without_a_lake_the_service_is_shown(tmp_path: Path) -> None:
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        assert client.get(INFO).status_code == 503
        samples = read(client)
    assert samples["tonlake_lake_ready", ()] == 0
    assert not [name for name, _ in samples if name.startswith("tonlake_lake_last")]
    assert samples["tonlake_tvm_busy", ()] == 0


def test_lag_is_shown_of_a_followed_lake(demo_lake: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for path in demo_lake.iterdir():
        (lake / path.name).symlink_to(path)
    write_following(
        lake,
        Following(
            1,
            0.0,
            node_last_mc_seqno=300,
            lake_last_mc_seqno=238,
            node_last_utime=160,
            lake_last_utime=100,
        ),
    )
    with TestClient(create_app(lake, PATIENT)) as client:
        samples = read(client)
    assert samples["tonlake_lake_lag_seconds", ()] >= 60
    assert samples["tonlake_node_last_mc_seqno", ()] == 300


def test_others_than_this_machine_need_a_key(demo_lake: Path) -> None:
    settings = compose(http={"host": "192.0.2.1"}, access={"rate_limits": "off"})
    with TestClient(create_app(demo_lake, settings)) as client:
        for path in ("/metrics", "/metrics/", "//metrics"):
            assert client.get(f"http://testserver{path}").status_code == 401
    public = msgspec.structs.replace(
        settings, metrics=msgspec.structs.replace(settings.metrics, public=True)
    )
    with TestClient(create_app(demo_lake, public)) as client:
        assert client.get("/metrics").status_code == 200


def test_times_fall_into_their_buckets() -> None:
    clock = Clock()
    meter = Meter(clock=clock)
    meter.know_routes(["/a", "/b/{x}"])
    for seconds in (0.002, 0.2, 20):
        end = meter.begin({"type": "http", "path": "/a", "method": "GET"})  # type: ignore[arg-type]
        clock.now_s += seconds
        end("none")
    found = {
        bound: meter.registry.get_sample_value(
            "tonlake_request_seconds_bucket", {"route": "/a", "le": bound}
        )
        for bound in ("0.001", "0.0025", "0.25", "10.0", "+Inf")
    }
    assert found == {"0.001": 0, "0.0025": 1, "0.25": 2, "10.0": 2, "+Inf": 3}
    unanswered = {"route": "/a", "method": "GET", "status": "none"}
    assert meter.registry.get_sample_value("tonlake_requests_total", unanswered) == 3
    assert meter.registry.get_sample_value("tonlake_requests_in_flight") == 0


@pytest.mark.parametrize("name", ["grafana.json", "operations.md"])
def test_boards_and_alerts_name_figures_that_exist(fresh: TestClient[Any], name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        panels = json.loads(text)["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels) > 5
    named = set(re.findall(r"tonlake_[a-z_]+", text))
    shown = set(re.findall(r"^# TYPE (tonlake_[a-z_]+)", fresh.get("/metrics").text, re.MULTILINE))
    followed = {"lake_lag_seconds", "lake_block_age_seconds", "node_last_mc_seqno"}
    known = {*shown, *(f"{one}_bucket" for one in shown), *(f"tonlake_{one}" for one in followed)}
    assert named
    assert named <= known


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    names = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi", REQUESTS)
    loggers = [logging.getLogger(), *map(logging.getLogger, names)]
    before = [(one, one.handlers, one.level, one.propagate) for one in loggers]
    yield
    for logger, handlers, level, propagate in before:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def test_requests_are_lines_of_json(demo_lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = compose(log={"format": "json", "requests": True})
    with TestClient(create_app(demo_lake, settings)) as client:
        configure_logs(settings.log)
        client.get("/api/v3/masterchainInfo?api_key=hidden", headers={"X-API-Key": "hidden"})
        client.get("/api/v3/no%0A{thing")
    lines: list[dict[str, Any]] = [
        json.loads(line) for line in capsys.readouterr().err.split("\n") if line
    ]
    assert [(line["route"], line["status"]) for line in lines] == [
        ("/api/v3/masterchainInfo", "200"),
        ("unknown", "404"),
    ]
    assert lines[0]["level"] == "info"
    assert lines[0]["snapshot"] == "1:238"
    assert lines[0]["duration_ms"] >= 0
    assert lines[0]["time"].endswith("+00:00")
    assert "hidden" not in str(lines)


def test_a_fault_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(LogSettings(format="json"))
    error = ValueError("line\nbreak")
    logging.getLogger("uvicorn.error").error("it %s", "failed", exc_info=error)
    logging.getLogger(REQUESTS).info("not asked for")
    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert (found["message"], found["logger"]) == ("it failed", "uvicorn.error")
    assert "ValueError: line\nbreak" in found["exception"]


def test_text_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(LogSettings())
    logging.getLogger("tonlake.api").warning("careful")
    assert capsys.readouterr().err.endswith(" WARNING tonlake.api: careful\n")
