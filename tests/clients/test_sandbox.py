"""Drawn programs end as in the emulator of @ton/sandbox, which knows global version 13."""

import base64
import json
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.clients.packages import NODE, RUN_S, provide_packages
from tests.ingest.derive.tvm.machine.differences import SANDBOX, list_unexplained
from tests.ingest.derive.tvm.machine.drawing import draw_program
from tests.ingest.derive.tvm.machine.test_run import GAS, make_context, make_data
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import Context, join_params
from tonlake.ingest.derive.tvm.machine.run import execute, open_bag
from tonlake.ingest.derive.tvm.machine.vmstack import build_stack

VERSION = 13
BATCH = 2000
DEEP = 900
"""Values of a stack that the emulator cannot write any more."""
OUT_OF_MEMORY = "memory access out of bounds"
LARGE = 2000


def ask(node: str, codes: Sequence[bytes], config: bytes) -> list[dict[str, Any]]:
    """Return the answers of the emulator to programs on the account of the recorded ones."""
    setting = {
        "data": base64.b64encode(make_data()).decode(),
        "address": f"0:{'11' * 32}",
        "time": 1_750_000_000,
        "balance": "123456789012",
        "seed": "07" * 32,
        "gas_limit": GAS,
        "method": 0,
    }
    lines: list[dict[str, Any]] = [
        {"code": base64.b64encode(code).decode(), **setting} for code in codes
    ]
    lines[0]["config"] = base64.b64encode(config).decode()
    done = subprocess.run(
        [node, "machine.mjs"],
        cwd=NODE,
        input="\n".join(map(json.dumps, lines)),
        capture_output=True,
        text=True,
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


def list_different(codes: Sequence[bytes], node: str, context: Context) -> list[int]:
    """Return the places of the programs that end otherwise than in the sandbox."""
    different = []
    for start in range(0, len(codes), BATCH):
        part = codes[start : start + BATCH]
        for place, (code, answer) in enumerate(
            zip(part, ask(node, part, context.config), strict=True), start
        ):
            ended = execute(open_bag(code), open_bag(make_data()), [0], context, GAS)
            if OUT_OF_MEMORY in answer.get("error", "") and len(ended.stack) > DEEP:
                continue
            found = ended.exit_code, ended.gas_used, build_stack(ended.stack).hash
            wanted = None
            if "stack" in answer:
                stack = parse_boc(base64.b64decode(answer["stack"]))
                wanted = answer["exit"], answer["gas"], stack.hash(stack.roots[0])
            if found != wanted:
                different.append(place)
    return different


@pytest.mark.parametrize("count", [200, pytest.param(100_000, marks=pytest.mark.long)])
def test_drawn_programs_end_as_in_sandbox(shared: Path, count: int) -> None:
    boc = (shared / "data" / "configs" / "mainnet_config_tonutils.boc").read_bytes()
    context = make_context(shrink(boc), VERSION, None)
    find = partial(list_different, node=provide_packages(), context=context)
    seeds = find([draw_program(seed, VERSION) for seed in range(count)])
    assert not list_unexplained(SANDBOX, seeds, VERSION, find)
