"""Token buckets on a manual clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.api.access.gate import TokenBuckets


class Clock:
    """A manual clock."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("rps", [1, 10, 25, 100])
def test_a_minute_admits_what_it_should(rps: int) -> None:
    clock = Clock()
    buckets = TokenBuckets(clock)
    admitted = 0
    for tick in range(60 * 400):
        clock.now_s = tick / 400
        admitted += buckets.take("a", rps) == 0.0
    assert abs(admitted / (60 * rps) - 1) <= 0.02


@given(st.integers(1, 100), st.lists(st.floats(0, 3), max_size=80))
def test_any_span_admits_no_more_than_rate_and_burst(rps: int, pauses: list[float]) -> None:
    clock = Clock()
    buckets = TokenBuckets(clock)
    times = []
    for pause_s in pauses:
        clock.now_s += pause_s
        wait_s = buckets.take("a", rps)
        assert wait_s >= 0
        if wait_s == 0:
            times.append(clock.now_s)
    for start in range(len(times)):
        for end in range(start, len(times)):
            assert end - start + 1 <= rps * (times[end] - times[start]) + rps + 1e-6


@given(st.integers(1, 100))
def test_a_client_that_waits_for_retry_after_is_admitted(rps: int) -> None:
    clock = Clock()
    buckets = TokenBuckets(clock)
    while (wait_s := buckets.take("a", rps)) == 0:
        pass
    assert buckets.take("b", rps) == 0
    clock.now_s += wait_s + 1e-9
    assert buckets.take("a", rps) == 0
    assert buckets.take("a", rps) > 0


def test_a_clock_that_goes_back_gives_nothing() -> None:
    clock = Clock()
    buckets = TokenBuckets(clock)
    assert buckets.take("a", 1) == 0
    clock.now_s = -1000
    assert buckets.take("a", 1) == 1


def test_askers_are_bounded() -> None:
    buckets = TokenBuckets(Clock(), most=3)
    for asker in "abcd":
        assert buckets.take(asker, 1) == 0
    assert buckets.take("d", 1) > 0
    assert buckets.take("a", 1) == 0  # forgotten, so its bucket is full
    assert len(buckets._buckets) == 3
