"""The cache of answers and programs between commits."""

import pytest

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.derive.contract import program as cache
from tonlake.ingest.derive.contract.program import AnswerCache
from tonlake.ingest.derive.contract.stack import Cell


def make_cell(value: int, *children: Cell) -> Cell:
    tree = children[0].tree if children else None
    builder = CellBuilder(tree).store_uint(value, 32)
    for child in children:
        builder.store_ref(child.root)
    return Cell(builder.tree, builder.end())


def test_the_least_recently_used_answer_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache, "MAX_ANSWERS", 2)
    answers = AnswerCache()
    for key in ("first", "second"):
        answers.keep(key, [1])
    assert answers.find("first")
    answers.keep("third", [1])
    assert [key for key in ("first", "second", "third") if answers.find(key)] == ["first", "third"]


def test_programs_are_created_once_and_the_oldest_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_PROGRAMS", 1)
    answers = AnswerCache()
    one, other = make_cell(1), make_cell(2)
    program = answers.find_program(one)
    assert answers.find_program(one) is program
    answers.find_program(other)
    assert answers.find_program(one) is not program
