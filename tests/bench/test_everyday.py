"""The ten everyday questions are held to a limit."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.bench.everyday import ask_questions
from tests.bench.figure import at_most


@pytest.mark.long
def test_each_question_is_held_to_the_limit(demo_lake: Path) -> None:
    figures = ask_questions(demo_lake, "demo", rounds=1, limit_ms=1e9)
    assert len(figures) == 10
    assert all(figure.targets == {"wall": at_most(1e9)} for figure in figures)
    assert all(figure.holds and figure.value > 0 for figure in figures)
    tight = (replace(figure, targets={"wall": at_most(0)}) for figure in figures)
    assert not any(figure.holds for figure in tight)
