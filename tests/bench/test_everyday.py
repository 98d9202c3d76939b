"""The ten everyday questions are held to a limit, and filters on views to their base tables."""

from pathlib import Path

import pytest

from tests.bench.everyday import ask_questions
from tests.bench.pruning import FILTERED, measure_pruning


@pytest.mark.parametrize(("limit_ms", "holds"), [(0, False), (1e9, True)])
def test_each_question_is_held_to_the_limit(
    demo_lake: Path, limit_ms: float, *, holds: bool
) -> None:
    figures = ask_questions(demo_lake, "demo", rounds=1, limit_ms=limit_ms)
    assert len(figures) == 10
    assert all(figure.holds is holds and figure.value > 0 for figure in figures)


def test_every_filter_is_compared_with_the_base_table(demo_lake: Path) -> None:
    figures = measure_pruning(demo_lake, rounds=1)
    assert len(figures) == len(FILTERED)
    assert all(figure.value > 0 and figure.ratio for figure in figures)
