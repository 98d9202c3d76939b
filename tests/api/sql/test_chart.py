"""Pictures of results."""

from __future__ import annotations

from typing import Any

import pytest

from tonlake.api.sql.chart import MOST_BARS, draw_chart


def test_names_make_bars() -> None:
    chart = draw_chart([("name", "string"), ("n", "int64")], [["a", 4], ["b", None], [None, 2]])
    assert chart is not None
    assert [(bar.name, bar.number) for bar in chart.bars] == [("a", "4"), ("NULL", "2")]
    assert chart.bars[0].width == 2 * chart.bars[1].width
    assert (chart.x, chart.y, chart.lines) == ("name", "n", [])


def test_times_make_lines_in_their_order() -> None:
    columns = [("hour", "timestamp[us]"), ("a", "int64"), ("b", "decimal128(38, 0)")]
    rows = [["2026-01-01T02:00:00", 1, 5], ["2026-01-01T01:00:00", 3, None]]
    chart = draw_chart(columns, rows)
    assert chart is not None
    assert [line.name for line in chart.lines] == ["a", "b"]
    assert chart.first == "2026-01-01T01:00:00"
    assert chart.lines[0].path.startswith("M60.0 ")
    assert (chart.low, chart.high) == ("0", "5")


def test_two_numbers_make_a_line() -> None:
    chart = draw_chart([("seqno", "int64"), ("n", "double")], [[1, 0.5], [2, 1.5], [None, 3]])
    assert chart is not None
    assert chart.lines[0].path.count("L") == 1


def test_many_rows_are_cut() -> None:
    rows: list[list[Any]] = [[f"{at}", at + 1] for at in range(MOST_BARS + 7)]
    chart = draw_chart([("name", "string"), ("n", "int64")], rows)
    assert chart is not None
    assert (len(chart.bars), chart.left_out) == (MOST_BARS, 7)


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ([("a", "string"), ("n", "int64")], [["x", 1]]),
        ([("n", "int64")], [[1], [2]]),
        ([("a", "string"), ("b", "string")], [["x", "y"], ["z", "w"]]),
        ([("a", "string"), ("n", "int64")], [["x", -1], ["y", 2]]),
        ([("a", "string"), ("n", "int64")], [["x", None], ["y", None]]),
        ([("t", "date32[day]"), ("n", "int64")], [["2026-01-01", 1], ["2026-01-01", 2]]),
        ([("t", "date32[day]"), ("n", "int64")], [[None, 1], [None, 2]]),
    ],
)
def test_nothing_to_draw(columns: list[tuple[str, str]], rows: list[list[Any]]) -> None:
    assert draw_chart(columns, rows) is None
