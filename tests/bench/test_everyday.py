"""The ten everyday questions are asked, and each is held to its limit."""

from pathlib import Path

import pytest

from tests.bench.everyday import ask_questions


@pytest.mark.parametrize(("limit_ms", "holds"), [(0, False), (1e9, True)])
def test_each_question_is_held_to_the_limit(
    demo_lake: Path, limit_ms: float, *, holds: bool
) -> None:
    figures = ask_questions(demo_lake, "demo", rounds=1, limit_ms=limit_ms)
    assert len(figures) == 10
    assert all(figure.holds is holds and figure.value > 0 for figure in figures)
