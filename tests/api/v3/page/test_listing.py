"""Lists as CSV, Arrow and Parquet, and cursors over all their pages."""

import csv
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.api.v3.conftest import Asker
from tonlake.api.request.table_format import MEDIA_TYPES, choose_format

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


@pytest.mark.parametrize(("operation", "name"), [*LISTS[:5], ("topAccountsByBalance", "")])
def test_cursors_lead_through_the_complete_list(ask: Asker, operation: str, name: str) -> None:
    def rows_of(answer: Any) -> list[Any]:
        found: list[Any] = answer[name] if name else answer
        return found

    whole = rows_of(ask(operation, limit=1000))
    paged: list[Any] = []
    params: dict[str, Any] = {"limit": 400 if len(whole) > 400 else max(1, len(whole) // 3)}
    while True:
        answer = ask.client.get(f"/api/v3/{operation}", params=params)
        assert answer.status_code == 200, answer.text
        paged += rows_of(answer.json())
        following = answer.headers.get("X-Tonlake-Cursor")
        if following is None or len(paged) >= 1000:
            break
        params["cursor"] = following
    assert paged[: len(whole)] == whole


def test_a_cursor_keeps_its_snapshot(ask: Asker) -> None:
    answer = ask.client.get("/api/v3/messages", params={"limit": 1})
    number = answer.headers["X-Tonlake-Snapshot"].split(":")[0]
    assert answer.headers["X-Tonlake-Cursor"] == f"{number}-1"
    status, text = ask.refused("messages", cursor="99999-1")
    assert (status, text) == (404, "the lake has no such snapshot")
    for cursor in ("1", "1-", "-1-1", "1-99999999999", "x"):
        status, text = ask.refused("messages", cursor=cursor)
        assert (status, text) == (422, 'schema: error converting value for "cursor"')
