"""Lakes that were not searched for contracts say so."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar.testing import TestClient

from tests.api.v3.conftest import Asker
from tests.api.v3.scene import Scene, make_raw
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.v3.page.history import find_unsearched
from tonlake.lake.log.place import Place, path_at
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import DataFile, LogState

ANN = make_raw("ann")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """Ask a lake of blocks and states alone."""
    scene = Scene(2)
    scene.put("account_states", account="ann", mc_seqno=1, account_status="active", code_hash="x")
    lake_dir = scene.commit(tmp_path_factory.mktemp("plain") / "lake")
    with TestClient(create_app(lake_dir, PATIENT)) as client:
        yield Asker(client)


@pytest.mark.parametrize(
    "operation",
    [
        "jetton/masters",
        "jetton/wallets",
        "jetton/transfers",
        "jetton/burns",
        "nft/collections",
        "nft/items",
        "nft/transfers",
        f"nft/sales?address={ANN}",
        f"dns/records?wallet={ANN}",
        f"multisig/wallets?address={ANN}",
        f"multisig/orders?address={ANN}",
        f"vesting?contract_address={ANN}",
        f"metadata?address={ANN}",
        f"balanceChanges?trace_id={'ab' * 32}",
    ],
)
def test_not_searched_is_not_empty(plain: Asker, operation: str) -> None:
    answer = plain.client.get(f"/api/v3/{operation}")
    assert answer.status_code == 503
    assert "run 'tonlake rebuild contracts'" in answer.json()["error"]


@pytest.mark.parametrize("page", ["jettons", "collections"])
def test_not_searched_is_not_an_empty_page(plain: Asker, page: str) -> None:
    answer = plain.client.get(f"/{page}")
    assert answer.status_code == 503
    assert "tonlake rebuild contracts" in answer.text


def test_states_come_without_metadata_and_document_it(plain: Asker) -> None:
    answer = plain.client.get("/api/v3/accountStates", params={"address": ANN})
    found = answer.json()
    assert found["metadata"] == {}
    assert [row["interfaces"] for row in found["accounts"]] == [[]]
    assert "has no contract detection" in answer.headers["x-tonlake-warning"]


def test_what_was_searched_in_part_is_said(tmp_path: Path) -> None:
    scene = Scene(2)
    scene.put_state("jetton_masters", "gold", 1, wallet_code_hash="w", content="{}")
    scene.put("interfaces", code_hash="code of jetton_masters", mc_seqno=1)
    lake_dir = scene.commit(tmp_path / "lake")
    later = Scene(4, first_mc_seqno=3)
    later.put("account_states", account="ann", mc_seqno=3, account_status="active", code_hash="x")
    later.commit(lake_dir)
    with TestClient(create_app(lake_dir, PATIENT)) as client:
        found = client.get("/api/v3/jetton/masters")
        assert len(found.json()["jetton_masters"]) == 1
        assert "masterchain 3..4 was not searched" in found.headers["x-tonlake-warning"]
        none = client.get("/api/v3/nft/items")
        assert none.status_code == 503
        assert "masterchain 3..4 was not searched for contracts" in none.json()["error"]


_PLACES = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 8)), max_size=6)


@given(_PLACES, _PLACES)
def test_what_was_not_searched_is_what_no_file_of_codes_meets(
    states: list[tuple[int, int]], searched: list[tuple[int, int]]
) -> None:
    """Each place is a first block and how many more."""
    snapshot = Snapshot(
        Path("lake"),
        LogState(files=(*_name("account_states", states), *_name("interfaces", searched))),
    )
    assert find_unsearched(snapshot) == tuple(
        sorted(
            {
                (first, first + more)
                for first, more in states
                if not any(at <= first + more and first <= at + beyond for at, beyond in searched)
            }
        )
    )


def _name(table: str, places: list[tuple[int, int]]) -> Iterator[DataFile]:
    for first, more in places:
        path = path_at(table, Place(first, first + more, "2024-01-01"), "ab" * 32)
        yield DataFile(path, table, rows=1, bytes=1, sha256="ab" * 32, schema_version=1)
