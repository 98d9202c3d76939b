"""The cache of answers and programs between commits."""

import pytest

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.derive.contract import program as cache
from tonlake.ingest.derive.contract.program import AnswerCache
from tonlake.ingest.derive.contract.session import make_key
from tonlake.ingest.derive.contract.stack import Address, Cell


def make_cell(value: int, *children: Cell) -> Cell:
    tree = children[0].tree if children else None
    builder = CellBuilder(tree).store_uint(value, 32)
    for child in children:
        builder.store_ref(child.root)
    return Cell(builder.tree, builder.end())


def test_an_address_is_kept_without_its_tree() -> None:
    answers = AnswerCache()
    start = make_cell(7).slice()
    address = (
        CellBuilder(start.tree).store_uint(*Address(-1, bytes(range(32))).slice().bits()).end()
    )
    answer = [5, None, start.tree.slice(address)]
    answers.keep("key", answer)
    found = answers.find("key")
    assert found is not None
    assert make_key(found) == make_key(answer)
    assert found[2].tree is not start.tree
    assert answers.find("other") is None


def test_the_rest_of_a_slice_is_kept() -> None:
    start = make_cell(0xABCD1234).slice()
    start.skip(16)
    answers = AnswerCache()
    answers.keep("key", [start])
    found = answers.find("key")
    assert found is not None
    assert found[0].bits() == (0x1234, 16)


def test_cells_and_slices_with_references_are_not_kept() -> None:
    answers = AnswerCache()
    parent = make_cell(1, make_cell(2))
    for value in (parent, parent.slice(), (1, 2)):
        answers.keep("key", [1, value])
        assert answers.find("key") is None


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
