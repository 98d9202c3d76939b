"""The machine ends as other engines do: the node's recorded emulator, and tonpy."""

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.derive.tvm.machine.drawing import draw_program
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import GetMethodCall
from tonlake.ingest.derive.tvm.context import Context, PreviousBlocks
from tonlake.ingest.derive.tvm.machine.export import write_stack
from tonlake.ingest.derive.tvm.machine.info import replace_version
from tonlake.ingest.derive.tvm.machine.run import execute, open_bag, run_call
from tonlake.ingest.derive.tvm.stack import StackLimits, TvmNan, TvmOpaque
from tonlake.ingest.errors import TvmStackDeep, TvmStackLarge

GAS = 1_000_000
LIMITS = StackLimits(entries=8000, depth=100, boc_bytes=16 << 20)


@pytest.fixture(scope="module")
def config(shared: Path) -> bytes:
    return (shared / "data" / "configs" / "mainnet_config_tonutils.boc").read_bytes()


def make_context(config: bytes, version: int, previous: PreviousBlocks | None) -> Context:
    """Return the surroundings of the recorded programs."""
    return Context(
        workchain=0,
        account=bytes([0x11]) * 32,
        now=1_750_000_000,
        balance=123_456_789_012,
        currencies={},
        config=replace_version(config, version),
        version=version,
        previous=previous,
        seed=bytes([7]) * 32,
    )


def make_data() -> bytes:
    tree = CellTree()
    child = CellBuilder(tree).store_uint(9, 64).end()
    return serialize_boc(tree, [CellBuilder(tree).store_uint(7, 32).store_ref(child).end()])


def test_recorded_programs(shared: Path, config: bytes) -> None:
    """Exit code, gas and the whole stack, continuations included, at versions 11, 13 and 15."""
    stream = pa.input_stream(str(shared / "data" / "tvm" / "programs.jsonl.zst"))
    contexts = {version: make_context(config, version, None) for version in (11, 13, 15)}
    data = open_bag(make_data())
    different: Counter[str] = Counter()
    count = 0
    for line in stream.read().splitlines():
        row = json.loads(line)
        code = open_bag(base64.b64decode(row["code"]))
        ended = execute(code, data, [0], contexts[row["v"]], GAS)
        wanted = parse_boc(base64.b64decode(row["stack"]))
        found = ended.exit_code, ended.gas_used, write_stack(ended.stack).hash
        if found != (row["exit"], row["gas"], wanted.hash(wanted.roots[0])):
            different[row["op"]] += 1
        count += 1
    assert not different
    assert count == 22_280


def normalize(value: Any) -> Any:
    """Return a value to compare: cells by hash, as bags of equal cells may differ."""
    if isinstance(value, tuple | list):
        return type(value).__name__, [normalize(item) for item in value]
    if hasattr(value, "boc"):
        tree = parse_boc(value.boc)
        return type(value).__name__, tree.hash(tree.roots[0])
    return type(value).__name__ if isinstance(value, TvmNan | TvmOpaque) else value


def check_program(code: bytes, context: Context) -> None:
    """Check that a program ends as in tonpy."""
    from tests.ingest.derive.tvm import oracle  # noqa: PLC0415 - not on every platform

    call = GetMethodCall(code, make_data(), (0,), context, gas_limit=GAS)
    try:
        wanted, found = oracle.run_call(call), run_call(call, LIMITS)
    except (TvmStackDeep, TvmStackLarge):
        return
    assert found.exit_code == wanted.exit_code
    if wanted.exit_code == -14:  # tonpy shows the limit, the node what was asked for
        assert found.gas_used > wanted.gas_used - 1
        return
    assert found.gas_used == wanted.gas_used
    assert normalize(found.stack) == normalize(wanted.stack)


@pytest.mark.usefixtures("tvm")
@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**64))
def test_drawn_programs_end_as_in_tonpy(config: bytes, seed: int) -> None:
    check_program(draw_program(seed), make_context(config, 11, PreviousBlocks()))


@pytest.mark.long
@pytest.mark.usefixtures("tvm")
def test_many_drawn_programs_end_as_in_tonpy(config: bytes) -> None:
    context = make_context(config, 11, PreviousBlocks())
    for seed in range(100_000):
        check_program(draw_program(seed), context)
