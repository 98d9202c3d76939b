"""Responses with and without the C extensions are compared; and the comparison itself."""

import asyncio
import csv
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from tests.compare.__main__ import compare, report
from tests.compare.ask import Answer, Request, ask_all
from tests.compare.draw import FULL, TABLES, Draw, read_rows
from tonlake.api.docs import write_description

SEED, SHORT = 18, 1
MIN_REQUESTS, MIN_SHORT = 2000, 200
START = "from tonlake.api.command.start import start; start()"


def _draw(lake_dir: Path, draws: int) -> list[Request]:
    description = msgspec.json.decode(write_description())
    return Draw(read_rows(lake_dir, SEED), description, SEED, draws).requests()


@contextmanager
def _serve(lake_dir: Path, native: str) -> Iterator[str]:
    """Serve a lake in a process of its own, with or without the C extensions."""
    environment = os.environ | {"TONLAKE_SQL_ENABLED": "1", "TONLAKE_NATIVE": native}
    command = [sys.executable, "-c", START, "serve", "--lake", str(lake_dir), "--port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().partition("/  ")[0]
        process.terminate()


def test_answers_are_the_same_without_the_extensions(demo_lake: Path) -> None:
    # Tables contain whole transactions as JSON text, whose names are in another order there. SQL
    # uses no extension, and starts a process for each statement.
    requests = [
        one
        for one in _draw(demo_lake, SHORT)[::2]
        if one.headers.get("Accept") not in TABLES and "/sql" not in one.route
    ]
    assert len(requests) >= MIN_SHORT
    answers = []
    for native in ("1", "0"):
        with _serve(demo_lake, native) as url:
            answers.append(asyncio.run(ask_all(url, requests)))
    routes = compare(requests, *answers)
    assert not any(route.differences for route in routes.values()), "\n".join(report(routes))
    assert sum(pages[0].status == 200 for pages in answers[0]) > len(requests) // 3


def test_a_full_run_reaches_every_route(demo_lake: Path, shared: Path) -> None:
    requests = _draw(demo_lake, FULL)
    assert len(requests) >= MIN_REQUESTS
    assert requests == _draw(demo_lake, FULL)
    reached = {(one.method, one.target.partition("?")[0]) for one in requests}
    description = msgspec.json.decode(write_description())
    described = {
        (method.upper(), path)
        for path, operations in description["paths"].items()
        for method in operations
        if method in {"get", "post"} and "streaming" not in path and "{" not in path
    }
    assert described <= reached
    endpoints = (shared / "reference" / "endpoints.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(endpoints.splitlines())
    # The service's own test is answered, but not described.
    assert {(row["method"], row["path"]) for row in rows if "/__" not in row["path"]} <= reached


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Answer(200, {}, b'{"a":[1,{"b":3}]}'), "$.a[1].b: 2 -> 3"),
        (Answer(200, {}, b'{"a":[1, {"b":2}]}'), "byte 8 of 17 -> 18"),
        (Answer(404, {}, b'{"a":[1,{"b":2}]}'), "status 200 -> 404"),
        (Answer(200, {"allow": "GET"}, b'{"a":[1,{"b":2}]}'), "allow: None -> 'GET'"),
    ],
)
def test_what_differs_is_found_and_named(other: Answer, said: str) -> None:
    requests, one = [Request("/x", "GET", "/x?a=1")], Answer(200, {}, b'{"a":[1,{"b":2}]}')
    assert not compare(requests, [[one]], [[one]])["/x"].differences
    (difference,) = compare(requests, [[one]], [[other]])["/x"].differences
    assert said in difference
