"""The machine ends as other engines do: the node's recorded emulator, and tonpy."""

import base64
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.ingest.derive.tvm.machine.differences import TONPY, list_unexplained
from tests.ingest.derive.tvm.machine.drawing import draw_program
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import Context, GetMethodCall, PreviousBlocks
from tonlake.ingest.derive.tvm.machine.fault import OUT_OF_GAS
from tonlake.ingest.derive.tvm.machine.info import replace_version
from tonlake.ingest.derive.tvm.machine.run import execute, open_bag, run_call
from tonlake.ingest.derive.tvm.machine.vmstack import build_stack
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
        found = ended.exit_code, ended.gas_used, build_stack(ended.stack).hash
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


def differs_from_tonpy(code: bytes, context: Context) -> bool:
    """Return whether a program ends otherwise than in tonpy."""
    from tests.ingest.derive.tvm import oracle  # noqa: PLC0415 - not on every platform

    call = GetMethodCall(code, make_data(), (0,), context, gas_limit=GAS)
    try:
        wanted, found = oracle.run_call(call), run_call(call, LIMITS)
    except (TvmStackDeep, TvmStackLarge):
        return False
    if wanted.exit_code == found.exit_code == OUT_OF_GAS:
        # tonpy's gas is the limit, the node's what was asked for, as on the stack.
        return bool(normalize(wanted.stack) != normalize(found.stack))
    one, other = (
        (each.exit_code, each.gas_used, normalize(each.stack)) for each in (wanted, found)
    )
    return one != other


@pytest.mark.usefixtures("tvm")
@pytest.mark.parametrize("count", [300, pytest.param(100_000, marks=pytest.mark.long)])
def test_drawn_programs_end_as_in_tonpy(config: bytes, count: int) -> None:
    context = make_context(config, 11, PreviousBlocks())

    def list_different(codes: Iterable[bytes]) -> list[int]:
        return [at for at, code in enumerate(codes) if differs_from_tonpy(code, context)]

    seeds = list_different(map(draw_program, range(count)))
    assert not list_unexplained(TONPY, seeds, 11, list_different)


@pytest.mark.usefixtures("tvm")
@pytest.mark.parametrize(
    "code",
    [
        "6F0092ED47ED67716F0101ED67D8",  # saves c7 twice: the first one stays
        "A9B31A", "A90300", "B7A9C3",  # divisions that round in no known way
        "6F01D770", "6F01D771",  # CHASHIX and CDEPTHIX of a tuple and nothing else
        "7083FFB7B0", "83FF7FB7B1", "83FF71B7B0",  # QAND and QOR with NaN
        "83FF800CB7AD", "83FF800DB7AD", "83FF810138B7AC", "83FF810137B7AC",  # shifts of NaN
        "83FF7773808034B7A9C0", "7783FF8034B7A924", "7783FF800CB7A920",  # divisions of NaN
        "83FF70B7F924",  # RIST255_QMUL of NaN by 0
    ],
)  # fmt: skip
def test_corners_of_version_11(config: bytes, code: str) -> None:
    """Rules of before versions 13 and 14, which no recorded program shows."""
    program = CellBuilder(tree := CellTree()).store_uint(int(code, 16), len(code) * 4).end()
    context = make_context(config, 11, PreviousBlocks())
    assert not differs_from_tonpy(serialize_boc(tree, [program]), context)
