"""Clients of version 3, and the facts of the demo node's lite server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.conftest import read_lines

if TYPE_CHECKING:
    from litestar.testing import TestClient


class Asker:
    """Calls operations of version 3."""

    def __init__(self, client: TestClient[Any]) -> None:
        self.client = client

    def __call__(self, operation: str, **params: Any) -> Any:
        """Return the response of an operation that must succeed."""
        answer = self.client.get(f"/api/v3/{operation}", params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def all(self, operation: str, **params: Any) -> list[dict[str, Any]]:
        """Return all rows of a list named like its operation, by pages of the largest size."""
        found: list[dict[str, Any]] = []
        while page := self(operation, limit=1000, offset=len(found), **params)[operation]:
            found += page
        return found

    def refused(self, operation: str, **params: Any) -> tuple[int, str]:
        """Return status and text of an operation that must fail."""
        answer = self.client.get(f"/api/v3/{operation}", params=params)
        body = answer.json()
        assert list(body) == ["error"]
        return answer.status_code, body["error"]


class Facts(msgspec.Struct, frozen=True):
    """The contents of the demo node's database, by its own lite server; hashes are base64."""

    blocks: list[dict[str, Any]]
    transactions: list[dict[str, Any]]
    accounts: list[dict[str, Any]]
    contracts: list[dict[str, Any]]

    def transaction_hashes(self, **filters: object) -> list[str]:
        """Return the hashes of the transactions with these values, ascending lt, then account."""
        found = [
            row
            for row in self.transactions
            if all(row[name] == value for name, value in filters.items())
        ]
        return [row["hash"] for row in found]

    def contract(self, kind: str) -> dict[str, Any]:
        """Return the first contract of a kind."""
        return next(item for item in self.contracts if item["kind"] == kind)


def to_base64(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text)).decode()


@pytest.fixture(scope="session")
def ask(client: TestClient[Any]) -> Asker:
    """A version 3 client over the whole demo lake."""
    return Asker(client)


@pytest.fixture(scope="session")
def facts(demo_facts: Path) -> Facts:
    transactions = read_lines(demo_facts / "expected-transactions.jsonl")
    for row in transactions:
        row["address"] = f"{row['workchain']}:{row['account'].upper()}"
        for name in ("hash", "prev_trans_hash", "in_msg_hash"):
            row[name] = row[name] and to_base64(row[name])
        row["out_msg_hashes"] = [to_base64(text) for text in row["out_msg_hashes"]]
    transactions.sort(key=lambda row: (row["lt"], row["workchain"], row["account"]))
    return Facts(
        blocks=read_lines(demo_facts / "expected-blocks.jsonl"),
        transactions=transactions,
        accounts=read_lines(demo_facts / "expected-accounts.jsonl"),
        contracts=json.loads((demo_facts / "expected.json").read_text())["contracts"],
    )


@pytest.fixture(scope="session")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """A client over the scene of module ``market``."""
    from litestar.testing import TestClient

    from tests.api.v3.market import build_market
    from tests.patience import PATIENT
    from tonlake.api.app import create_app

    lake_dir = build_market().commit(tmp_path_factory.mktemp("market") / "lake")
    with TestClient(create_app(lake_dir, PATIENT)) as client:
        yield Asker(client)
