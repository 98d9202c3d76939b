"""A debug header names the source of a response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litestar.testing import TestClient

from tests.patience import compose
from tonlake.api.app import create_app

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "X-Tonlake-Answered-By"
RANKED = "/api/v3/topAccountsByBalance?limit=3"
FILTERED = f"/api/v3/transactions?limit=3&exclude_account=0:{'0' * 64}"


def test_what_answered_is_named_only_where_that_is_asked_for(demo_lake: Path) -> None:
    for debug in (True, False):
        with TestClient(create_app(demo_lake, compose(http={"debug_headers": debug}))) as client:
            found = [client.get(path).headers.get(HEADER) for path in (RANKED, FILTERED)]
            assert found == (["index", "mixed"] if debug else [None, None])
