"""tonlake run: get-methods of code and data, for people and for machines."""

import base64
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import commands
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import StackLimits, TvmCell
from tonlake.ingest.derive.tvm.machine.vmstack import read_stack

LIMITS = StackLimits(entries=100, depth=10, boc_bytes=10_000)


def write(code: str) -> bytes:
    """Return a bag with a cell of these hex digits."""
    builder = CellBuilder().store_uint(int(code, 16), len(code) * 4)
    return serialize_boc(builder.tree, [builder.end()])


run = partial(commands.run, "run", catch_exceptions=False)


def test_a_method_of_files(tmp_path: Path) -> None:
    code, data = tmp_path / "code.boc", tmp_path / "data.txt"
    code.write_bytes(write("30A0ED44D0D31F30A0"))  # DROP ADD c4 PUSHCTR CTOS 32 LDU DROP ADD
    data.write_text(base64.b64encode(write("00000007")).decode())
    done = run("--code", str(code), "--data", str(data), "sum", "5", "0x10")
    assert done.exit_code == 0
    first, value = done.output.splitlines()
    assert first.startswith("exit code 0, gas ")
    assert value == "28"
    shown = run("--code", code.read_bytes().hex(), "--data", str(data), "--json", "1", "5", "16")
    answer = json.loads(shown.output)
    assert (answer["exit"], answer["stack"]) == (0, ["28"])


def test_arguments_of_every_kind() -> None:
    bag = write("AB").hex()
    address = "0:" + "11" * 32
    code = write("30").hex()  # DROP: the method id
    values = "null", "-3", f"cell:{bag}", f"slice:{bag}", address
    done = run("--json", "--code", code, "m", "--", *values)
    null, number, cell, part, where = json.loads(done.output)["stack"]
    assert (null, number) == (None, "-3")
    assert base64.b64decode(cell["cell"]) == base64.b64decode(part["slice"])
    tree = parse_boc(base64.b64decode(where["slice"]))
    assert tree.bit_length(tree.roots[0]) == 267


def test_the_address_may_be_friendly() -> None:
    code = write("30F828").hex()  # DROP MYADDR
    friendly = "kf8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM_BP"
    done = run("--json", "--code", code, "m", "--address", friendly)
    raw = run("--json", "--code", code, "m", "--address", "-1:" + "33" * 32)
    assert json.loads(done.output)["stack"] == json.loads(raw.output)["stack"]
    wrong = run("--code", code, "m", "--address", "zz")
    assert (wrong.exit_code, "'zz' is not an address" in wrong.stderr) == (1, True)


@pytest.mark.parametrize("option", ["--balance", "--gas-limit"])
def test_negative_options_are_refused(option: str) -> None:
    done = run("--code", write("30").hex(), "m", option, "-5")
    assert done.exit_code == 2
    assert "-5 is not in the range" in done.stderr


def write_lines(path: Path, *lines: dict[str, Any] | str) -> str:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts) + "\n")
    return str(path)


def test_lines_are_answered_in_order_and_bad_ones_named(tmp_path: Path) -> None:
    ready = base64.b64encode(write("F807")).decode()  # GASCONSUMED, since version 4
    cell = {"cell": base64.b64encode(write("AB")).decode()}
    done = run(
        write_lines(
            tmp_path / "calls.jsonl",
            {"code": ready, "v": 4, "stack": [1, "0x10", None, [2, 3], cell]},
            {"code": ready, "v": 3},
            "no JSON",
            {"code": "AAAA"},
            {"code": ready, "stack": [{"tuple": ready}]},
            {"code": ready, "stack": ["zz"]},
            {"code": ready, "balance": "zz"},
            {"code": "AAA"},
            {"code": ready, "v": 99, "method": "seqno"},
            {"code": base64.b64encode(write("FE70FF")).decode(), "v": 99},
        )
    )
    assert done.exit_code == 3
    first, old, *bad, newer, unknown = map(json.loads, done.output.splitlines())
    left = read_stack(base64.b64decode(first["stack"]), LIMITS)
    assert (first["exit"], first["gas"]) == (0, 31)
    assert left[:4] == (1, 16, None, (2, 3))
    assert isinstance(left[4], TvmCell)
    assert left[5:] == (0, 26)
    assert old["exit"] == 6
    assert all(list(each) == ["error"] for each in bad)
    assert [each["error"] for each in bad][2:] == [
        "'tuple' is none of cell, slice, builder",
        "'zz' is not a number",
        "'zz' is not a number",
        "Invalid base64 encoded string - at `$.code`",
    ]
    assert newer["exit"] == 0
    assert "supports global version 15, and the network has 99" in unknown["error"]


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    done = commands.run("run", tmp_path / "none.jsonl")
    assert done.exit_code == 2
    assert "give --code" in done.output
    assert commands.run("run", "seqno", "5").exit_code == 2


@pytest.mark.parametrize("depth", [2000, 200_000])
def test_a_stack_too_deep_for_cells_is_an_error(tmp_path: Path, depth: int) -> None:
    """SINGLE again and again: a tuple in a tuple."""
    tree = CellTree()
    body = CellBuilder(tree).store_uint(0x6F01, 16).end()
    builder = CellBuilder(tree).store_uint(0x82, 8).store_uint(1, 5).store_uint(depth, 27)
    code = builder.store_uint(0x8A, 8).store_uint(0xE4, 8).store_ref(body).end()
    line = {"code": base64.b64encode(serialize_boc(tree, [code])).decode(), "gas_limit": 10**9}
    done = run(write_lines(tmp_path / "calls.jsonl", line))
    assert done.exit_code == 3
    assert "too deep" in json.loads(done.output)["error"]
