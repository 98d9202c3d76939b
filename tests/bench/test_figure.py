"""Figures report which targets are met and which are not."""

import io
import time

import pytest
from rich.console import Console

from tests.bench.clock import sample
from tests.bench.figure import Figure, at_least, at_most, percentile, print_figures


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_percentile_is_the_nearest_rank(share: float, value: int) -> None:
    assert percentile(range(100, 0, -1), share) == value


def test_figure_holds_when_all_of_its_targets_do() -> None:
    targets = {"value": at_most(0.5), "p99": at_most(3), "ratio": at_least(1)}

    def make(value: float, p99: float, ratio: float | None) -> Figure:
        return Figure(
            area="a", name="n", unit="ms", value=value, p99=p99, ratio=ratio, targets=targets
        )

    assert make(0.5, 3, 1).holds is True
    assert make(0.51, 3, 1).holds is False
    assert make(0.5, 3.1, 1).holds is False
    assert make(0.5, 3, 0.9).holds is False
    assert make(0.5, 3, None).holds is False
    assert Figure(area="a", name="n", unit="ms", value=1).holds is None


def test_table_shows_numbers_targets_and_notes() -> None:
    out = io.StringIO()
    figure = Figure(
        area="look-ups",
        name="by hash",
        unit="ms",
        value=0.1234,
        peer=1234.5,
        ratio=12.34,
        targets={"value": at_most(0.1)},
        note="cold",
    )
    print_figures([figure], Console(file=out, width=150))
    text = out.getvalue()
    for part in ("look-ups", "by hash", "0.123", "1,234", "12.3x", "≤ 0.1", "NO", "cold"):
        assert part in text


def test_samples_count_work_and_not_sleep() -> None:
    def work(seconds: float) -> None:
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass
        time.sleep(0.01)

    samples = sample(work, [0.005] * 5, warm_up=0)
    assert len(samples.cpu_ms) == 5
    assert samples.median_ms >= 5
    assert samples.median_wall_ms >= 15
    assert samples.median_ms < samples.median_wall_ms


def test_slow_questions_are_asked_at_least_three_times() -> None:
    assert len(sample(time.sleep, [0.01] * 20, warm_up=0, budget_s=0).cpu_ms) == 3
