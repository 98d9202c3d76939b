"""Pages of every list while commits arrive: their union is the snapshot of the first page."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient

from tests.ingest.whole import ingest_node
from tests.patience import PATIENT, compose
from tonlake.api.app import create_app
from tonlake.api.request import snapshot
from tonlake.api.request.call import Query, converters_of
from tonlake.api.v3.routes import routes

BLOCKS, COMMITS, BEFORE = 16, 6, 4
"""Masterchain blocks of a commit; commits in all, and those that are there at the start."""
CURSOR = "X-Tonlake-Cursor"
ROUTES: dict[str, dict[str, object]] = {
    "blocks": {},
    "transactions": {"end_lt": 12000000},
    "messages": {"end_lt": 12000000},
    "traces": {},
    "events": {},
    "actions": {},
    "jetton/masters": {},
    "jetton/wallets": {},
    "jetton/transfers": {},
    "jetton/burns": {},
    "nft/collections": {},
    "nft/items": {},
    "nft/transfers": {},
    "topAccountsByBalance": {},
    "transactionsByMasterchainBlock": {"seqno": 20},
    "transactionsByMessage": {"opcode": "0x0f8a7ea5"},
}
MOVING = {"traces", "events", "actions"}
"""Their own cursors say where a page begins, not in which snapshot: that is asked for."""


@pytest.fixture(scope="module")
def written(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of many commits."""
    lake_dir = tmp_path_factory.mktemp("written")
    sizes = {"mc_blocks_per_commit": BLOCKS, "mc_blocks_per_chunk": BLOCKS}
    ingest_node(demo_node, lake_dir, compose(ingest=sizes), 1, BLOCKS * COMMITS)
    return lake_dir


class Growing:
    """A lake to which another's commits are brought one by one: a commit is its log entry."""

    def __init__(self, written: Path, lake_dir: Path) -> None:
        shutil.copytree(written, lake_dir, copy_function=os.link)
        self._from, self._to, self.commits = written / "_log", lake_dir / "_log", 0
        for entry in self._to.glob("*.json"):
            entry.unlink()

    def commit(self) -> None:
        if self.commits < COMMITS:
            self.commits += 1
            name = f"{self.commits}.json"
            os.link(self._from / name, self._to / name)


class Walk(msgspec.Struct):
    """A list that is read page by page."""

    client: TestClient[Any]
    route: str
    params: dict[str, Any]
    limit: int
    snapshot: int
    found: list[Any] = []
    cursor: str | None = None
    ended: bool = False

    def ask(self, **params: Any) -> Any:
        answer = self.client.get(f"/api/v3/{self.route}", params={**self.params, **params})
        assert answer.status_code == 200, answer.text
        return answer

    def turn(self) -> None:
        """Read the next page."""
        params: dict[str, object] = {"limit": self.limit}
        if self.cursor is not None:
            params["cursor"] = self.cursor
        if self.route in MOVING:
            params["snapshot"] = self.snapshot
        answer = self.ask(**params)
        page = rows_of(answer)
        assert len(page) <= self.limit
        self.found += page
        self.cursor = answer.headers.get(CURSOR)
        self.ended = self.cursor is None or not page


def rows_of(answer: Any) -> list[Any]:
    body = answer.json()
    if isinstance(body, list):
        return body
    return next(value for value in body.values() if isinstance(value, list))


ELECTOR = "-1:" + "3" * 64
"""Has a transaction in every masterchain block."""


class History(msgspec.Struct):
    """An account's transactions as version 2 gives them, newest first from one on."""

    client: TestClient[Any]
    limit: int
    found: list[Any] = []
    ended: bool = False

    def turn(self) -> None:
        """Read the next page, which begins with the last transaction of the one before."""
        params: dict[str, Any] = {"address": ELECTOR, "limit": self.limit}
        if self.found:
            params |= {name: self.found[-1]["transaction_id"][name] for name in ("lt", "hash")}
        answer = self.client.get("/api/v2/getTransactions", params=params)
        assert answer.status_code == 200, answer.text
        page = answer.json()["result"]
        assert page[: len(self.found[-1:])] == self.found[-1:]
        self.ended = len(page) <= len(self.found[-1:])
        self.found += page[len(self.found[-1:]) :]


FURTHER: dict[str, dict[str, object]] = {"masterchainBlockShards": {"seqno": 20}}
"""Lists of few rows."""

OTHER_KEYS = {"dns/records", "multisig/wallets", "multisig/orders", "vesting"}
"""Lists of one account's or one name's, which the lake has none of."""


@pytest.fixture(scope="module")
def client(written: Path) -> Iterator[TestClient[Any]]:
    """The service over all commits; any of their snapshots can be asked for."""
    with TestClient(create_app(written, PATIENT)) as found:
        yield found


def test_every_list_is_walked() -> None:
    listed = {
        path.strip("/")
        for route in routes
        if "cursor" in converters_of(route.opt.get("query") or Query)
        for path in route.paths
    }
    assert listed == ROUTES.keys() | FURTHER.keys() | OTHER_KEYS


@settings(max_examples=15, deadline=None)
@given(
    route=st.sampled_from(sorted(ROUTES | FURTHER)),
    number=st.integers(2, COMMITS),
    pages=st.integers(1, 4),
    sort=st.sampled_from(("asc", "desc")),
)
def test_pages_of_any_snapshot(
    client: TestClient[Any], route: str, number: int, pages: int, sort: str
) -> None:
    """The pages of a snapshot, however many, are its list: nothing twice, nothing left out."""
    walk = Walk(client, route, (ROUTES | FURTHER)[route] | {"sort": sort}, 1, number)
    whole = rows_of(walk.ask(snapshot=number, limit=1000))
    walk.limit = max(1, len(whole) // pages)
    walk.params["snapshot"] = number
    while not walk.ended:
        walk.turn()
    assert walk.found == whole


@pytest.fixture
def _always_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "LOOK_EVERY_S", 0)


@pytest.mark.usefixtures("_always_look")
@settings(max_examples=1)
@given(pages=st.integers(2, 3), sort=st.sampled_from(("asc", "desc")))
def test_pages_are_those_of_one_snapshot(
    written: Path, tmp_path_factory: pytest.TempPathFactory, pages: int, sort: str
) -> None:
    growing = Growing(written, tmp_path_factory.mktemp("growing") / "lake")
    for _ in range(BEFORE):
        growing.commit()
    with TestClient(create_app(growing._to.parent, PATIENT)) as client:
        walks, wholes = [], []
        for route, params in ROUTES.items():
            order = params if route == "topAccountsByBalance" else params | {"sort": sort}
            walk = Walk(client, route, order, 1, BEFORE)
            whole = walk.ask(snapshot=BEFORE, limit=1000)
            walk.limit = max(1, len(rows_of(whole)) // pages)
            walks.append(walk)
            wholes.append(whole)
        assert sum(len(rows_of(whole)) > 1 for whole in wholes) > len(ROUTES) // 2
        history = History(client, BLOCKS * BEFORE // pages)
        before = client.get(
            "/api/v2/getTransactions", params={"address": ELECTOR, "limit": BLOCKS * BEFORE * 2}
        ).json()["result"]
        readers: list[Walk | History] = [*walks, history]
        while any(not each.ended for each in readers):
            for each in readers:
                if not each.ended:
                    each.turn()
            growing.commit()
        assert history.found == before
        assert len(before) >= BLOCKS * BEFORE
        assert growing.commits > BEFORE + 1
        for walk, whole in zip(walks, wholes, strict=True):
            assert walk.found == rows_of(whole), walk.route
            assert walk.ask(snapshot=BEFORE, limit=1000).content == whole.content, walk.route
        newest = walks[0].ask(limit=1000)
        assert len(rows_of(newest)) > len(walks[0].found), "the commits were seen"
