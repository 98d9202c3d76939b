"""Drawn programs end as in the emulator of @ton/sandbox, which knows global version 13."""

import base64
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.clients.packages import NODE, RUN_S, provide_packages
from tests.ingest.derive.tvm.machine.drawing import draw_program
from tests.ingest.derive.tvm.machine.test_run import GAS, make_context, make_data
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.tvm.machine.export import write_stack
from tonlake.ingest.derive.tvm.machine.run import execute, open_bag

VERSION = 13


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


def test_drawn_programs_end_as_in_sandbox(shared: Path) -> None:
    boc = (shared / "data" / "configs" / "mainnet_config_tonutils.boc").read_bytes()
    context = make_context(boc, VERSION, None)
    codes = [draw_program(seed, VERSION) for seed in range(200)]
    answers = ask(provide_packages(), codes, context.config)
    assert len(answers) == len(codes)
    for seed, (code, answer) in enumerate(zip(codes, answers, strict=True)):
        ended = execute(open_bag(code), open_bag(make_data()), [0], context, GAS)
        wanted = parse_boc(base64.b64decode(answer["stack"]))
        assert (ended.exit_code, ended.gas_used) == (answer["exit"], answer["gas"]), seed
        assert write_stack(ended.stack).hash == wanted.hash(wanted.roots[0]), seed
