"""Axes: round marks at the right places, for any numbers."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tonlake.api.sql.chart import MAX_MARKS, fit_scale, read_place, write_number

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
