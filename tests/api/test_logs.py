"""Logs as JSON lines, and as text."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.patience import compose
from tonlake.api.app import create_app
from tonlake.api.metrics import REQUESTS, configure_logs
from tonlake.api.settings import LogSettings


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
