"""Drawn programs end as in the emulator of @ton/sandbox, which knows global version 13."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.clients.packages import NODE, RUN_S, provide_packages
from tests.commands import run_program
from tests.ingest.derive.tvm.contracts import Contract, list_calls, read_lake, read_recorded
from tests.ingest.derive.tvm.machine.differences import SANDBOX, list_unexplained
from tests.ingest.derive.tvm.machine.drawing import draw_program
from tests.ingest.derive.tvm.machine.test_run import GAS
from tests.ingest.derive.tvm.programs import make_context, make_data
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import Context, StackValue, join_params
from tonlake.ingest.derive.tvm.machine.run import enter_value, execute, open_bag
from tonlake.ingest.derive.tvm.machine.vmstack import build_stack

VERSION = 13
BATCH = 2000
DEEP = 900
"""Values of a stack that the emulator cannot write any more."""
OUT_OF_MEMORY = "memory access out of bounds"
LARGE = 2000


Call = tuple[Contract, tuple[StackValue, ...]]


def _write(value: StackValue) -> str:
    return str(value) if isinstance(value, int) else base64.b64encode(value.boc).decode()


def ask(node: str, calls: Sequence[Call], config: bytes) -> list[dict[str, Any]]:
    """Return the answers of the emulator to calls on the account of the recorded programs."""
    setting = {
        "address": f"0:{'11' * 32}",
        "time": 1_750_000_000,
        "balance": "123456789012",
        "seed": "07" * 32,
        "gas_limit": GAS,
    }
    lines: list[dict[str, Any]] = [
        {
            **{name: base64.b64encode(boc).decode() for name, boc in contract._asdict().items()},
            "stack": list(map(_write, stack[:-1])),
            "method": stack[-1],
            **setting,
        }
        for contract, stack in calls
    ]
    lines[0]["config"] = base64.b64encode(config).decode()
    done = run_program(
        node,
        "machine.mjs",
        cwd=NODE,
        input="\n".join(map(json.dumps, lines)),
        timeout=RUN_S,
        check=True,
    )
    return list(map(json.loads, done.stdout.splitlines()))


def shrink(config: bytes) -> bytes:
    """Return a configuration without validators, which the emulator would parse each time."""
    tree = parse_boc(config)
    params = {
        number - (number >> 31 << 32): serialize_boc(tree, [value.load_ref()])
        for number, value in iter_hashmap(tree, tree.roots[0], 32)
    }
    return join_params({number: boc for number, boc in params.items() if len(boc) < LARGE})


def list_different(calls: Sequence[Call], node: str, context: Context) -> list[int]:
    """Return the places of the calls that end otherwise than in the sandbox."""
    different = []
    for start in range(0, len(calls), BATCH):
        part = calls[start : start + BATCH]
        for place, ((contract, stack), answer) in enumerate(
            zip(part, ask(node, part, context.config), strict=True), start
        ):
            code, data = map(open_bag, contract)
            ended = execute(code, data, [*map(enter_value, stack)], context, GAS)
            if OUT_OF_MEMORY in answer.get("error", "") and len(ended.stack) > DEEP:
                continue
            found = ended.exit_code, ended.gas_used, build_stack(ended.stack).hash
            wanted = None
            if "stack" in answer:
                left = parse_boc(base64.b64decode(answer["stack"]))
                wanted = answer["exit"], answer["gas"], left.hash(left.roots[0])
            if found != wanted:
                different.append(place)
    return different


@pytest.fixture(scope="module")
def context(shared: Path) -> Context:
    boc = (shared / "data" / "configs" / "mainnet_config_tonutils.boc").read_bytes()
    return make_context(shrink(boc), VERSION, None)


@pytest.mark.parametrize("count", [200, pytest.param(100_000, marks=pytest.mark.long)])
def test_drawn_programs_end_as_in_sandbox(context: Context, count: int) -> None:
    node = provide_packages()

    def find(codes: Sequence[bytes]) -> list[int]:
        calls = [(Contract(code, make_data()), (0,)) for code in codes]
        return list_different(calls, node, context)

    seeds = find([draw_program(seed, VERSION) for seed in range(count)])
    assert not list_unexplained(SANDBOX, seeds, VERSION, find)


@pytest.mark.long
def test_get_methods_end_as_in_sandbox(
    context: Context, shared: Path, demo_lake: Path, newest_lake: Path
) -> None:
    """Every known get-method of every code in two networks and in recorded accounts."""
    contracts = [*read_lake(demo_lake), *read_lake(newest_lake), *read_recorded(shared)]
    calls = list_calls(contracts)
    different = list_different(calls, provide_packages(), context)
    assert not [calls[place][1] for place in different]
