"""Pages of the richest accounts are their whole list, and every route answers."""

import csv
from pathlib import Path
from typing import Any

from litestar.testing import TestClient

from tests.api.v3.conftest import Asker


def test_pages_of_top_accounts_are_complete(ask: Asker) -> None:
    whole = ask("topAccountsByBalance", limit=1000)
    found: list[Any] = []
    while page := ask("topAccountsByBalance", limit=17, offset=len(found)):
        found += page
    assert found == whole


NOT_THERE = "unknown path"


def test_all_routes_answer(client: TestClient[Any], shared: Path) -> None:
    with (shared / "reference" / "endpoints.csv").open(encoding="utf-8") as file:
        routes = [(row["method"], row["path"]) for row in csv.DictReader(file)]
    assert len(routes) == 47
    for method, path in routes:
        answer = client.request(method, path, follow_redirects=False)
        assert NOT_THERE not in answer.text, path
        assert answer.status_code not in (405, 500), (path, answer.text)
