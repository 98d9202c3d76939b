"""Programs, and runs that the machine leaves to the TVM."""

from __future__ import annotations

import pytest

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.derive.contract.machine.run import Program
from tonlake.ingest.derive.contract.machine.stack import Account, Declined, Thrown
from tonlake.ingest.derive.contract.stack import Address, Cell

ADDRESS = Address(0, bytes(32))
GAS = 1_000_000


def assemble(code: str, *children: Cell) -> Cell:
    builder = CellBuilder(children[0].tree if children else None)
    builder.store_uint(int(code or "0", 16), len(code) * 4)
    for child in children:
        builder.store_ref(child.root)
    return Cell(builder.tree, builder.end())


def run(code: str, *arguments: object, gas: int = GAS) -> list[object]:
    data = assemble("0000002A")
    return Program(assemble(code)).run(Account(ADDRESS, data), arguments, gas, {})


def test_data_and_address_are_read() -> None:
    assert run("ED44D0D31F30") == [42]  # c4 PUSH, CTOS, 32 LDU, DROP
    (me,) = run("F828")  # MYADDR
    assert me.bits() == ADDRESS.slice().bits()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("F823", id="NOW"),
        pytest.param("F824", id="BLOCKLT"),
        pytest.param("F825", id="LTIME"),
        pytest.param("F826", id="RANDSEED"),
        pytest.param("F827", id="BALANCE"),
        pytest.param("F829", id="CONFIGROOT"),
        pytest.param("F82B", id="INCOMINGVALUE"),
        pytest.param("F82D", id="PREVBLOCKSINFOTUPLE"),
        pytest.param("7FF832", id="CONFIGPARAM"),
        pytest.param("F810", id="RANDU256"),
        pytest.param("F800", id="ACCEPT"),
        pytest.param("ED47", id="c7 PUSH"),
        pytest.param("F840", id="GETGLOBVAR"),
    ],
)
def test_anything_beyond_code_and_data_is_declined(code: str) -> None:
    with pytest.raises(Declined):
        run(code, 1)


def test_a_library_cell_is_left_to_the_tvm() -> None:
    builder = CellBuilder().store_uint(2, 8).store_bytes(bytes(32))
    library = Cell(builder.tree, builder.end(exotic=True))
    account = Account(ADDRESS, library)
    for code in ("D0", "ED44D0"):
        with pytest.raises(Declined):
            Program(assemble(code)).run(account, (library,), GAS, {})


@pytest.mark.parametrize(
    ("code", "gas"),
    [
        ("70817FFF91A4E4", GAS),  # 0, 32767, PUSHCONT { INC }, REPEAT
        ("9170E6", GAS),  # PUSHCONT { 0 }, UNTIL
        ("917F90E8", GAS),  # PUSHCONT { -1 }, PUSHCONT {}, WHILE
        ("ED44D0D31F30", 100),
    ],
)
def test_gas_never_exceeds_the_limit(code: str, gas: int) -> None:
    with pytest.raises(Declined, match="gas"):
        run(code, gas=gas)


@pytest.mark.parametrize(
    ("code", "left"),
    [("75", [5]), ("7176A0", [7]), ("7191A4D8", [2])],
    ids=["push", "add", "execute"],
)
def test_gas_is_bounded_from_the_first_instruction_on(code: str, left: list[int]) -> None:
    assert run(code) == left
    with pytest.raises(Declined, match="exceed the gas limit"):
        run(code, gas=10)


def test_loops_within_the_limit_end() -> None:
    assert run("707591A4E4") == [5]
    assert run("7092A420E6") == [1]  # PUSHCONT { INC DUP }, UNTIL
    assert run("75912091A5E8") == [0]  # { DUP } { DEC } WHILE


def test_a_code_that_calls_itself_ends() -> None:
    with pytest.raises(Declined):
        run("F00A")  # CALLDICT 10: the code itself


def test_a_failure_is_one() -> None:
    for code in ("F22B", "F2C01B", "ED44D0D3FF", "ED44D0D1"):
        with pytest.raises(Thrown):
            run(code)
    with pytest.raises(Declined):
        run("F200")  # THROW 0 is a normal exit
    with pytest.raises(Declined):
        run("A0")  # no values to add


def test_constants_of_the_code_go_into_cells_of_the_data() -> None:
    child = assemble("CAFE")
    # PUSHREF, NEWC, STREF, ENDC
    program = Program(assemble("88C8CCC9", child))
    data = assemble("")
    planted: dict[Cell, int] = {}
    found = [program.run(Account(ADDRESS, data), (), GAS, planted)[0] for _ in range(2)]
    assert [each.tree is data.tree for each in found] == [True, True]
    assert found[0].hash == assemble("", child).hash
    assert len(planted) == 1
