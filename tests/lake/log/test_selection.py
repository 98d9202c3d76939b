"""Ranges of days as people write them."""

import pytest

from tonlake.lake.log.selection import parse_days


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2024-01-01..2024-02-03", ("2024-01-01", "2024-02-03")),
        ("2024-01-01..", ("2024-01-01", None)),
        ("..2024-01-01", (None, "2024-01-01")),
        ("..", (None, None)),
        ("2024-01-01", ("2024-01-01", "2024-01-01")),
    ],
)
def test_days(text: str, days: tuple[str | None, str | None]) -> None:
    assert parse_days(text) == days


@pytest.mark.parametrize(
    "text", ["", "x", "2024-01-01..x", "2024-13-01", "2024-02-02..2024-02-01", "1..2", "2024-01"]
)
def test_no_days(text: str) -> None:
    with pytest.raises(ValueError, match=r"day|ends before"):
        parse_days(text)
