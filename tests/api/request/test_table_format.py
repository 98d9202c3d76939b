"""CSV that spreadsheets do not interpret as formulas."""

import csv
import io
from typing import Any

import pyarrow as pa
from litestar.testing import TestClient

from tonlake.api.request.table_format import write_csv_text, write_safe_csv_text

CELLS = ("=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "a=1", "", None, "'=1", "1\n=1", "1\r=1")


def read(text: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.decode(), newline="")))


def test_formulas_are_escaped_where_that_is_asked_for() -> None:
    table = pa.table({"=name": list(CELLS), "number": [-1] * len(CELLS)})
    plain = read(write_csv_text(table.to_reader()))
    assert [row[0] for row in plain] == ["=name", *(cell or "" for cell in CELLS)]
    safe = read(write_safe_csv_text(table.to_reader()))
    assert [row[1] for row in safe[1:]] == ["-1"] * len(CELLS)
    expected = [f"'{cell}" for cell in ("=name", *CELLS[:6])]
    assert [row[0] for row in safe] == [*expected, *(cell or "" for cell in CELLS[6:])]


def test_the_parameter_is_read_by_lists(client: TestClient[Any]) -> None:
    headers = {"Accept": "text/csv"}
    path = "/api/v3/transactions?workchain=-1&limit=2&csv_safe="
    for value, status in (("1", 200), ("0", 200), ("x", 422)):
        answer = client.get(path + value, headers=headers)
        assert answer.status_code == status
        assert "X-Tonlake-Warning" not in answer.headers
    safe, plain = (read(client.get(path + value, headers=headers).content) for value in "10")
    assert [[cell.lstrip("'") for cell in row] for row in safe] == plain
    assert any(cell.startswith("'-") for row in safe for cell in row)  # an account
