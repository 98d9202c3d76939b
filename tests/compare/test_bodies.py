"""Responses with and without the C extensions are compared; and the comparison itself."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.compare.ask import Answer, Exchange, Request, read_recording, write_recording
from tests.compare.bodies import Side
from tests.compare.derive import FULL, TABLES, Derived
from tests.compare.difference import compare, report
from tests.compare.sample import read_sample
from tests.compare.service import ROOT
from tonlake.api.docs import write_description

if TYPE_CHECKING:
    from pathlib import Path

SEED, SHORT = 18, 1
MIN_REQUESTS, MIN_SHORT = 2000, 300


def _derive(lake_dir: Path, draws: int) -> list[Request]:
    description: dict[str, Any] = msgspec.json.decode(write_description())
    return Derived(read_sample(lake_dir, SEED), description, SEED, draws).derive()


def test_answers_are_the_same_without_the_extensions(demo_lake: Path) -> None:
    # Tables contain whole transactions as JSON text, whose names are in another order there.
    requests = [one for one in _derive(demo_lake, SHORT) if one.headers.get("Accept") not in TABLES]
    assert len(requests) >= MIN_SHORT
    sides = [Side(str(ROOT), demo_lake, {"TONLAKE_NATIVE": native}) for native in ("1", "0")]
    before, after = (side.ask(requests, SEED, SHORT) for side in sides)
    routes = compare(before, after)
    assert not any(route.differences for route in routes.values()), "\n".join(report(routes))
    found = sum(exchange.answers[0].status == 200 for exchange in before)
    assert found > len(requests) // 3


def test_a_full_run_reaches_every_route(demo_lake: Path, shared: Path) -> None:
    requests = _derive(demo_lake, FULL)
    assert len(requests) >= MIN_REQUESTS
    assert requests == _derive(demo_lake, FULL)
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


def _exchange(body: bytes, status: int = 200, **headers: str) -> Exchange:
    return Exchange(Request("/x", "GET", "/x?a=1"), [Answer(status, headers, body)])


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (_exchange(b'{"a":[1,{"b":3}]}'), "$.a[1].b: 2 -> 3"),
        (_exchange(b'{"a":[1,{"b":2}]}', 404), "status 200 -> 404"),
        (_exchange(b'{"a":[1,{"b":2}]}', allow="GET"), "allow: None -> 'GET'"),
    ],
)
def test_what_differs_is_found_and_named(other: Exchange, said: str) -> None:
    one = _exchange(b'{"a":[1,{"b":2}]}')
    assert not compare([one], [one])["/x"].differences
    routes = compare([one], [other])
    assert said in routes["/x"].differences[0]
    assert list(report(routes))[-1].endswith(
        " 0 with the same values in another order, 1 different"
    )


def test_another_order_is_not_another_value() -> None:
    route = compare([_exchange(b'{"a":1,"b":2}')], [_exchange(b'{"b":2,"a":1}')])["/x"]
    assert (route.equal, len(route.reordered), route.differences) == (0, 1, [])


def test_recordings_keep_everything(tmp_path: Path) -> None:
    kept = [_exchange(bytes(range(256)), allow="GET"), _exchange(b"")]
    write_recording(tmp_path / "kept", kept)
    assert read_recording(tmp_path / "kept") == kept
