"""Lists as CSV, Arrow and Parquet, their cursors, and what was not searched."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar.testing import TestClient

from tests.api.v3.conftest import Asker
from tests.api.v3.scene import Scene, make_raw
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.request.table_format import MEDIA_TYPES, choose_format
from tonlake.api.v3.page.history import find_unsearched
from tonlake.lake.log.place import Place, path_at
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import DataFile, LogState

LISTS = [
    ("transactions", "transactions"),
    ("messages", "messages"),
    ("actions", "actions"),
    ("blocks", "blocks"),
    ("traces", "traces"),
    ("accountStates", "accounts"),
]


def fetch(ask: Asker, operation: str, form: str, **params: Any) -> bytes:
    answer = ask.client.get(
        f"/api/v3/{operation}", params=params, headers={"Accept": MEDIA_TYPES[form]}
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith(MEDIA_TYPES[form])
    return answer.content


def check_table(rows: list[dict[str, Any]], table: pa.Table) -> None:
    """Every value that JSON has stands in its column, and nothing else does."""
    assert table.num_rows == len(rows)
    for row, flat in zip(rows, table.to_pylist(), strict=True):
        for name, value in flat.items():
            found: Any = row
            for part in name.split("."):
                found = found.get(part) if isinstance(found, dict) else None
            if isinstance(found, list | dict) or (isinstance(value, str) and found != value):
                assert found == json.loads(value), name
            else:
                assert found == value, name
        leaves = {name.split(".")[0] for name in flat}
        assert set(row) <= leaves


@pytest.mark.parametrize(("operation", "name"), LISTS)
def test_forms_are_equal(ask: Asker, operation: str, name: str) -> None:
    params: dict[str, Any] = {"limit": 20}
    if operation == "accountStates":
        params = {"address": [ask("topAccountsByBalance", limit=1)[0]["account"]]}
    rows = ask(operation, **params)[name]
    assert rows
    arrow = pa.ipc.open_stream(fetch(ask, operation, "arrow", **params)).read_all()
    check_table(rows, arrow)
    assert pq.read_table(io.BytesIO(fetch(ask, operation, "parquet", **params))) == arrow
    lines = list(csv.reader(io.StringIO(fetch(ask, operation, "csv", **params).decode())))
    assert lines[0] == arrow.column_names
    assert len(lines) == len(rows) + 1
    for line, row in zip(lines[1:], arrow.to_pylist(), strict=True):
        texts = ["" if value is None else str(value) for value in row.values()]
        assert [text.lower() for text in line] == [text.lower() for text in texts]


def test_jetton_transfers(market: Asker) -> None:
    rows = market("jetton/transfers", limit=50)["jetton_transfers"]
    table = pa.ipc.open_stream(fetch(market, "jetton/transfers", "arrow", limit=50)).read_all()
    assert rows
    check_table(rows, table)


def test_an_empty_page_has_its_columns(ask: Asker) -> None:
    params = {"msg_hash": "0" * 64}
    assert ask("messages", **params)["messages"] == []
    empty = pa.ipc.open_stream(fetch(ask, "messages", "arrow", **params)).read_all()
    full = pa.ipc.open_stream(fetch(ask, "messages", "arrow", limit=1)).read_all()
    assert (empty.num_rows, empty.schema) == (0, full.schema)


@pytest.mark.parametrize("accept", ["*/*", "text/plain", "image/webp, nonsense;q=x", "text/html"])
def test_anything_else_is_json(ask: Asker, accept: str) -> None:
    answer = ask.client.get("/api/v3/blocks", params={"limit": 1}, headers={"Accept": accept})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["blocks"]


def test_what_is_no_list_is_json(ask: Asker) -> None:
    answer = ask.client.get("/api/v3/masterchainInfo", headers={"Accept": "text/csv"})
    assert answer.json()["last"]["seqno"] > 0


def test_an_error_is_json(ask: Asker) -> None:
    answer = ask.client.get(
        "/api/v3/transactions", params={"limit": "x"}, headers={"Accept": "text/csv"}
    )
    assert (answer.status_code, list(answer.json())) == (422, ["error"])


def test_forms_are_kept_apart(ask: Asker) -> None:
    for form in ("json", "csv", "arrow", "json", "csv"):
        assert fetch(ask, "blocks", form, limit=2)[:1] == {"json": b"{", "csv": b"w"}.get(
            form, b"\xff"
        )


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", None),
        ("*/*", None),
        ("text/csv", "csv"),
        ("application/json, text/csv", "json"),
        ("application/json;q=0.5, text/csv;q=0.9", "csv"),
        ("text/csv;q=0", None),
        ("TEXT/CSV", "csv"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "html"),
        ("application/vnd.apache.arrow.stream;q=nan", None),
    ],
)
def test_choose_format(accept: str, form: str | None) -> None:
    assert choose_format(accept) == form


def test_a_cursor_keeps_its_snapshot(ask: Asker) -> None:
    answer = ask.client.get("/api/v3/messages", params={"limit": 1})
    number = answer.headers["X-Tonlake-Snapshot"].split(":")[0]
    assert answer.headers["X-Tonlake-Cursor"] == f"{number}-1"
    status, text = ask.refused("messages", cursor="99999-1")
    assert (status, text) == (404, "the lake has no such snapshot")
    for cursor in ("1", "1-", "-1-1", "1-99999999999", "x"):
        status, text = ask.refused("messages", cursor=cursor)
        assert (status, text) == (422, 'schema: error converting value for "cursor"')


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


@pytest.mark.parametrize(
    ("name", "is_indexed", "info"),
    [
        (
            "gold",
            True,
            {
                "type": "jetton_masters",
                "valid": True,
                "name": "Gold",
                "symbol": "AU",
                "extra": {"decimals": "3"},
            },
        ),
        ("silver", False, {"type": "jetton_masters", "extra": {"uri": "https://s.example"}}),
        ("dross", True, {"type": "jetton_masters", "valid": False}),
        ("birds", True, {"type": "nft_collections", "valid": True, "name": "Birds"}),
        (
            "bird 10",
            True,
            {"type": "nft_items", "valid": True, "name": "A bird", "nft_index": "10"},
        ),
        (
            "lone",
            False,
            {
                "type": "nft_items",
                "valid": True,
                "name": "Lone",
                "nft_index": "0",
                "extra": {"uri": "https://n.example"},
            },
        ),
    ],
)
def test_token(market: Asker, name: str, *, is_indexed: bool, info: dict[str, Any]) -> None:
    found = market("metadata", address=make_raw(name))
    assert found == {make_raw(name): {"is_indexed": is_indexed, "token_info": [info]}}


def test_a_jetton_wallet_brings_its_master(market: Asker) -> None:
    found = market("metadata", address=[make_raw("ann gold"), make_raw("ann"), "rubbish"])
    assert set(found) == {make_raw("ann gold"), make_raw("gold")}
    assert found[make_raw("ann gold")] == {
        "is_indexed": True,
        "token_info": [
            {
                "type": "jetton_wallets",
                "valid": True,
                "extra": {"balance": "0", "owner": make_raw("ann"), "jetton": make_raw("gold")},
            }
        ],
    }


def test_somebody_must_be_named(market: Asker) -> None:
    assert market.refused("metadata") == (422, "at least 1 address required")


def test_states_come_with_methods_and_metadata(market: Asker) -> None:
    answer = market("accountStates", address=[make_raw("gold"), make_raw("ann")])
    states = {row["address"]: row for row in answer["accounts"]}
    assert states[make_raw("gold")]["contract_methods"] == [106029]
    assert states[make_raw("gold")]["interfaces"] == ["jetton_master"]
    assert states[make_raw("ann")]["contract_methods"] == [1, 2]
    assert states[make_raw("ann")]["interfaces"] is None
    assert set(answer["metadata"]) == {make_raw("gold")}


def test_headers_leave_it_out(market: Asker) -> None:
    path = f"/api/v3/jetton/masters?address={make_raw('gold')}"
    answer = market.client.get(path, headers={"X-No-Metadata": "1"}).json()
    assert answer["metadata"] == {}
    assert answer["address_book"]
    answer = market.client.get(path, headers={"X-No-Address-Book": "1"}).json()
    assert answer["metadata"]
    assert answer["address_book"] == {}
