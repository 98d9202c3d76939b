"""Ranges in messages are readable, however many there are."""

from tonlake.api.text.encoding import MAX_RANGES, name_ranges


def test_of_many_ranges_the_first_are_named() -> None:
    ranges = [(number, number) for number in range(1, 3 * MAX_RANGES, 2)]
    assert name_ranges([]) == "nothing"
    assert name_ranges([(1, 3), (7, 9)]) == "1..3, 7..9"
    assert name_ranges(ranges).count("..") == MAX_RANGES
    assert name_ranges(ranges).endswith(f" and {len(ranges) - MAX_RANGES} more ranges")
