"""The cache of programs between commits, and the bounds of what a run leaves."""

import pytest

from tests.ingest.derive.tvm.programs import CONTEXT, assemble, repeat
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.derive.contract import program as cache
from tonlake.ingest.derive.contract.program import Program, ProgramCache
from tonlake.ingest.derive.contract.stack import Cell
from tonlake.ingest.errors import BocError


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


@pytest.mark.parametrize(
    "code",
    [
        repeat("3070", 17, "206F02"),  # DUP PAIR: few tuples, 2^17 values
        repeat("30C8C9", 400, "20C8CCC9"),  # each cell is above all earlier ones
    ],
)
def test_shared_values_are_written_out_up_to_a_limit(code: str) -> None:
    tree = parse_boc(assemble(code))
    with pytest.raises(BocError, match="65536 values"):
        Program(Cell(tree, tree.roots[0])).run(make_cell(1), (0,), CONTEXT)
