"""Every route of the public service exists."""

import csv
from pathlib import Path
from typing import Any

from litestar.testing import TestClient

NOT_THERE = "unknown path"


def test_all_routes_answer(client: TestClient[Any], shared: Path) -> None:
    with (shared / "reference" / "endpoints.csv").open(encoding="utf-8") as file:
        routes = [(row["method"], row["path"]) for row in csv.DictReader(file)]
    assert len(routes) == 47
    for method, path in routes:
        answer = client.request(method, path, follow_redirects=False)
        assert NOT_THERE not in answer.text, path
        assert answer.status_code not in (405, 500), (path, answer.text)
