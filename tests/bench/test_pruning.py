"""Filters on views are asked of a lake, each beside its base table."""

from pathlib import Path

from tests.bench.pruning import FILTERED, measure_pruning


def test_every_filter_is_compared_with_the_base_table(demo_lake: Path) -> None:
    figures = measure_pruning(demo_lake, rounds=1)
    assert len(figures) == len(FILTERED)
    assert all(figure.value > 0 and figure.ratio for figure in figures)
