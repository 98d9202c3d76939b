"""The cache of programs between commits."""

import pytest

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.derive.contract import program as cache
from tonlake.ingest.derive.contract.program import ProgramCache
from tonlake.ingest.derive.contract.stack import Cell


def make_cell(value: int) -> Cell:
    builder = CellBuilder().store_uint(value, 32)
    return Cell(builder.tree, builder.end())


def test_programs_are_created_once_and_the_oldest_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_PROGRAMS", 1)
    programs = ProgramCache()
    one, other = make_cell(1), make_cell(2)
    program = programs.find(one)
    assert programs.find(one) is program
    programs.find(other)
    assert programs.find(one) is not program
