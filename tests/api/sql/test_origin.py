"""Pages of other origins or host names get no SQL; programs and the service's own page do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.patience import patient
from tonlake.api.app import create_app

ASKED = "/sql?query=select+1"


@pytest.fixture(scope="module")
def sql(demo_lake: Path) -> Iterator[TestClient[Any]]:
    settings = patient(
        http={"cors_origins": "*"}, sql={"enabled": True, "hosts": "api.example.org, b.example"}
    )
    with TestClient(create_app(demo_lake, settings)) as client:
        yield client


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8080"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "localhost.evil.example."},
        {"Host": "127.0.0.1:8080", "Origin": "https://evil.example"},
        {"Host": "127.0.0.1:8080", "Origin": "http://127.0.0.1:8081"},
        {"Host": "127.0.0.1:8080", "Origin": "null"},
        {"Host": "127.0.0.1:8080", "Origin": ""},
        {"Host": "127.0.0.1:8080", "Sec-Fetch-Site": "cross-site"},
        {"Host": "127.0.0.1:8080", "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
    ],
)
@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_other_pages_are_refused(
    sql: TestClient[Any], headers: dict[str, str], accept: str
) -> None:
    reason = "other web origins" if headers["Host"] == "127.0.0.1:8080" else "this host name"
    for answer in (
        sql.get(ASKED, headers=headers | {"Accept": accept}),
        sql.post("/sql", content="select 1", headers=headers | {"Accept": accept}),
    ):
        assert answer.status_code == 403
        assert reason in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        *({"Host": host} for host in ("127.0.0.1:8080", "[::1]:8080", "localhost", "192.0.2.1")),
        *({"Host": host} for host in ("tonlake", "nas.local:80", "API.example.org", "b.example:1")),
        {"Host": "127.0.0.1:8080", "Origin": "http://127.0.0.1:8080"},
        {"Host": "api.example.org", "Origin": "https://api.example.org"},
        {"Host": "api.example.org:443", "Origin": "https://API.example.org"},
        {"Host": "127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"},
        {"Host": "127.0.0.1:8080", "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_programs_and_the_own_page_are_answered(
    sql: TestClient[Any], headers: dict[str, str]
) -> None:
    answer = sql.get("/sql?format=json&query=", headers=headers)
    assert (answer.status_code, "query is required" in answer.text) == (400, True)


def test_a_program_gets_rows(sql: TestClient[Any]) -> None:
    assert sql.get(ASKED, headers={"Host": "tonlake"}).json()["rows"] == [[1]]


def test_a_link_elsewhere_leads_to_the_empty_page(sql: TestClient[Any]) -> None:
    answer = sql.get("/sql", headers={"Accept": "text/html", "Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_elsewhere_shows_a_statement_and_does_not_run_it(
    sql: TestClient[Any], site: str
) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
    page = sql.get("/sql?format=html&query=select+40%2B2", headers=headers)
    assert page.status_code == 200
    assert "select 40+2</textarea>" in page.text
    assert "from another site" in page.text
    assert "<td" not in page.text
    assert sql.get("/sql?format=csv&query=select+1", headers=headers).status_code == 403
    assert sql.post("/sql", content="select 1", headers=headers).status_code == 403
