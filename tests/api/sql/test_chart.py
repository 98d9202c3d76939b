"""Charts of results, and their axes: round marks at the right places, for any numbers."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tonlake.api.sql.chart import (
    DIGIT_WIDTH,
    MAX_BARS,
    MAX_MARKS,
    MAX_SERIES,
    MIN_WIDTH,
    WIDTH,
    ChartUnfit,
    draw_chart,
    fit_scale,
    read_place,
    write_number,
)
from tonlake.queries.loader import Chart

NAMED = [("name", "string"), ("n", "int64")]
TIMED = [("hour", "timestamp[us]"), ("a", "int64"), ("b", "decimal128(38, 0)")]
HOURS: list[list[Any]] = [["2026-01-01T02:00:00", 1, "5"], ["2026-01-01T01:00:00", 3, None]]


def test_names_make_bars() -> None:
    chart = draw_chart(NAMED, [["a", 4], ["b", None], [None, 2]])
    assert [(mark.text, box.text) for mark, box in zip(chart.names, chart.boxes, strict=True)] == [
        ("a", "4"),
        ("NULL", "2"),
    ]
    assert chart.boxes[0].width == 2 * chart.boxes[1].width
    assert (chart.x, chart.y, chart.kind, chart.lines) == ("name", "n", "named", ())


def test_long_numbers_have_room_beside_their_bars() -> None:
    chart = draw_chart(NAMED, [["a", 1_795_233_518], ["b", 2]])
    longest = chart.boxes[0]
    beside = (WIDTH - longest.x - longest.width) / WIDTH * MIN_WIDTH
    assert beside >= DIGIT_WIDTH * len(longest.text)


def test_bars_below_zero_lead_the_other_way() -> None:
    chart = draw_chart(NAMED, [["a", 4], ["b", -4]])
    up, down = chart.boxes
    assert up.x == chart.zero == down.x + down.width
    assert up.width == down.width


def test_times_make_lines_in_their_order() -> None:
    chart = draw_chart(TIMED, HOURS)
    assert [name for _, name in chart.key] == ["a", "b"]
    assert [dot.text for dot in chart.dots[:2]] == [
        "2026-01-01T01:00:00: 3",
        "2026-01-01T02:00:00: 1",
    ]
    assert chart.lines[0][1].startswith(f"M{chart.dots[0].x} ")
    assert [mark.text for mark in chart.x_marks][::2] == ["01:00", "01:30", "02:00"]
    assert [mark.text for mark in chart.y_marks] == ["0", "1", "2", "3", "4", "5"]
    assert chart.zero == chart.y_marks[0].place


def test_lines_and_bars_begin_at_zero_and_points_do_not() -> None:
    rows = [[1, 100], [2, 101]]
    columns = [("x", "int64"), ("y", "int64")]
    line, bar, points = (
        draw_chart(columns, rows, Chart(kind)) for kind in ("line", "bar", "scatter")
    )
    assert line.y_marks[0].text == bar.y_marks[0].text == "0"
    assert points.y_marks[0].text == "100"
    assert (len(points.dots), points.lines, points.zero) == (2, (), None)
    low, high = bar.boxes
    assert low.y + low.height == high.y + high.height == bar.zero
    assert low.height / high.height == pytest.approx(100 / 101, abs=0.01)


def test_a_choice_of_columns() -> None:
    chart = draw_chart(TIMED, HOURS, Chart("bar", "hour", ("a",)))
    assert (chart.y, chart.key, len(chart.boxes)) == ("a", (), 2)


def test_a_column_makes_series() -> None:
    columns = [("day", "date32[day]"), ("dex", "string"), ("ton", "double")]
    rows: list[list[Any]] = [
        ["2026-01-01", "a", 1.5],
        ["2026-01-01", None, 2],
        ["2026-01-02", "a", 3],
        *(["2026-01-02", f"dex {number}", 1] for number in range(MAX_SERIES)),
    ]
    chart = draw_chart(columns, rows, Chart("line", "day", ("ton",), "dex"))
    assert [name for _, name in chart.key][:2] == ["a", "NULL"]
    assert chart.lines[0][1].count("L") == 1
    assert len(chart.lines) == MAX_SERIES
    assert chart.series_left_out == ("dex 2", "dex 3")
    assert chart.y == "ton"


def test_a_series_without_values_is_left_out() -> None:
    columns = [("hour", "timestamp[us]"), ("symbol", "string"), ("n", "double")]
    rows: list[list[Any]] = [[f"2026-01-01T0{at}:00:00", "TON", at] for at in range(3)]
    chart = draw_chart(columns, [*rows, [rows[0][0], None, None]], Chart("line", by="symbol"))
    assert (len(chart.lines), chart.key) == (1, ())


def test_rows_without_a_place_are_left_out() -> None:
    chart = draw_chart([("seqno", "int64"), ("n", "double")], [[1, 0.5], [2, 1.5], [None, 3]])
    assert chart.lines[0][1].count("L") == 1


def test_many_rows_are_cut() -> None:
    rows: list[list[Any]] = [[f"{at}", at + 1] for at in range(MAX_BARS + 7)]
    chart = draw_chart(NAMED, rows)
    assert (len(chart.boxes), chart.names_left_out) == (MAX_BARS, 7)


@pytest.mark.parametrize(
    ("columns", "rows", "choice", "reason"),
    [
        (NAMED, [["x", 1]], Chart(), "two rows"),
        ([("n", "int64")], [[1], [2]], Chart(), "column of numbers in addition"),
        ([("a", "string"), ("b", "string")], [["x", "y"]] * 2, Chart(), "column of numbers"),
        (NAMED, [["x", None], ["y", None]], Chart(), "n has no values"),
        (TIMED, [["2026-01-01", 1, 1]] * 2, Chart(), "hour has no two values"),
        (TIMED, [[None, 1, 1]] * 2, Chart(), "hour has no two values"),
        (NAMED, [["x", 1], ["y", 2]], Chart("line"), "only bars"),
        (NAMED, [["x", 1], ["y", 2]], Chart("bar", "name", ("name",)), "column of numbers"),
        (NAMED, [["x", 1], ["y", 2]], Chart("bar", "<b>"), "no column <b>"),
        (NAMED, [["x", 1], ["y", 2]], Chart("bar", by="z"), "no column z"),
    ],
)
def test_nothing_to_draw(
    columns: list[tuple[str, str]], rows: list[list[Any]], choice: Chart, reason: str
) -> None:
    with pytest.raises(ChartUnfit, match=reason):
        draw_chart(columns, rows, choice)


def test_places_in_the_chain_are_drawn_only_where_they_are_chosen() -> None:
    columns = [("hash", "binary"), ("now", "int64"), ("mc_seqno", "int64"), ("fees", "int64")]
    rows: list[list[Any]] = [["aa", 1, 7, 5], ["bb", 2, 8, 6]]
    assert draw_chart(columns, rows).y == "fees"
    assert draw_chart(columns, rows, Chart(x="now")).y == "fees"
    assert draw_chart(columns, rows, Chart(y=("mc_seqno",))).y == "mc_seqno"
    with pytest.raises(ChartUnfit):
        draw_chart(columns[:3], [row[:3] for row in rows])


PLACES = st.floats(-1e299, 1e299) | st.floats(-10, 10)


@given(st.lists(PLACES, min_size=1), st.booleans())
@example(values=[2.0**53 + 4], zero=False)
@example(values=[2.0**53], zero=False)
def test_every_value_and_mark_lies_on_the_axis(values: list[float], zero: bool) -> None:  # noqa: FBT001
    scale = fit_scale(values, 270, 12, zero=zero)
    marks = scale.list_marks()
    assert len(marks) <= MAX_MARKS + 1
    for place in (*map(scale.put, values), *(mark.place for mark in marks)):
        assert 11.9 <= place <= 270.1
    if zero:
        assert 11.9 <= scale.put(0) <= 270.1


@pytest.mark.parametrize(
    ("last", "texts"),
    [
        ("2026-01-01T00:00:04", ["00:00:00", "00:00:01", "00:00:02", "00:00:03", "00:00:04"]),
        ("2026-01-01T02:00:00", ["00:00", "00:30", "01:00", "01:30", "02:00"]),
        (
            "2026-01-01T08:00:00",
            ["01-01 00:00", "01-01 02:00", "01-01 04:00", "01-01 06:00", "01-01 08:00"],
        ),
        ("2026-01-04", ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]),
    ],
)
def test_marks_of_times(last: str, texts: list[str]) -> None:
    ends = [read_place(text) for text in ("2026-01-01", last)]
    scale = fit_scale([end for end in ends if end is not None], 0, 700, zero=False, is_time=True)
    assert [mark.text for mark in scale.list_marks()] == texts


def test_centuries_have_few_marks() -> None:
    scale = fit_scale([-62e9, 250e9], 0, 700, zero=False, is_time=True)
    assert 1 < len(scale.list_marks()) <= MAX_MARKS + 1


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (3, 3.0),
        ("340282366920938463463374607431768211455", 2.0**128),
        ("1970-01-02", 86400.0),
        ("1970-01-01T01:00:00+01:00", 0.0),
        *((value, None) for value in (None, True, "NaN", "inf", "1e301", "word", [1])),
    ],
)
def test_places(value: object, place: float | None) -> None:
    assert read_place(value) == place


def test_numbers() -> None:
    numbers = (0, 12, 1234567, 0.05, 1234.5, 1.23456)
    assert [write_number(each) for each in numbers] == [
        *("0", "12", "1,234,567", "0.05", "1,234", "1.235")
    ]
