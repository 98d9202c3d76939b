"""Runs of programs: what may take more gas than the limit is left to the TVM."""

from __future__ import annotations

import pytest

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.contract.machine.run import Program
from tonlake.ingest.derive.contract.machine.stack import Account, Declined
from tonlake.ingest.derive.contract.stack import Address, Cell

GAS = 1_000_000


def run(code: str, gas_limit: int) -> list[object]:
    tree = CellTree()
    cell = Cell(tree, CellBuilder(tree).store_bytes(bytes.fromhex(code)).end())
    data = Cell(tree, CellBuilder(tree).end())
    account = Account(Address(0, bytes(32)), data)
    return Program(cell).run(account, (), gas_limit, {})


@pytest.mark.parametrize(
    ("code", "left"),
    [("75", [5]), ("7176A0", [7]), ("7191A4D8", [2])],
    ids=["push", "add", "execute"],
)
def test_gas_is_bounded_from_the_first_instruction_on(code: str, left: list[int]) -> None:
    assert run(code, GAS) == left
    with pytest.raises(Declined, match="more gas than the limit"):
        run(code, 10)
