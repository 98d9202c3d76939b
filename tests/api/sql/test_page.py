"""Cells of a result: their text and their links."""

from typing import Any

import pytest

from tonlake.api.sql.page import MAX_CHARACTERS, Cell, find_page, write_row, write_value

HEX = "ab" * 32
ELECTOR = "Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF"
RAW = "-1:" + "3" * 64


@pytest.mark.parametrize(
    ("name", "value", "row", "path"),
    [
        ("any", ELECTOR, {}, f"/account/{RAW.replace(':', '%3A')}"),
        ("any", RAW, {}, f"/account/{RAW.replace(':', '%3A')}"),
        ("any", ELECTOR[:-1] + "A", {}, None),
        ("account", HEX, {"workchain": 0}, f"/account/0%3A{HEX.upper()}"),
        ("tx_account", HEX, {"tx_workchain": -1}, f"/account/-1%3A{HEX.upper()}"),
        ("owner", HEX, {"owner_workchain": 0}, f"/account/0%3A{HEX.upper()}"),
        ("sender_id", HEX, {"sender_workchain": 0}, f"/account/0%3A{HEX.upper()}"),
        ("sender_id", HEX, {"sender_workchain": None}, f"/search?q={HEX}"),
        ("hash", HEX.upper(), {}, f"/transaction/{HEX}"),
        ("trace_id", HEX, {}, f"/trace/{HEX}"),
        ("msg_hash", HEX, {}, f"/search?q={HEX}"),
        ("code", "A" * 42 + "/=", {}, f"/search?q={'A' * 42}%2F%3D"),
        *(("any", value, {}, None) for value in (None, 5, True, "word", HEX[1:], [HEX])),
    ],
)
def test_pages(name: str, value: object, row: dict[str, Any], path: str | None) -> None:
    assert find_page(name, value, row) == path


def test_a_row() -> None:
    assert write_row(["workchain", "account", "n"], [0, HEX, None]) == [
        Cell("0"),
        Cell(HEX, f"/account/0%3A{HEX.upper()}"),
        Cell(None),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((None, None), (True, "true"), (False, "false"), (1.5, "1.5"), ([1, "a"], '[1,"a"]')),
        ("x" * 200, "x" * MAX_CHARACTERS + "…"),
    ],
)
def test_texts(value: object, text: str | None) -> None:
    assert write_value(value) == text
