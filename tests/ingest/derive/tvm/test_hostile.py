"""Malicious programs: each ends, and the next one runs."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.derive.tvm import programs
from tests.ingest.derive.tvm.programs import make_call
from tests.ingest.derive.tvm.replay import Replay
from tests.ingest.derive.tvm.values import VALUES
from tonlake.ingest.decode.block.transaction import decode_transaction
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, graft
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc, serialize_single
from tonlake.ingest.derive.tvm.call import (
    Emulated,
    EmulationCall,
    GetMethodCall,
    Outcome,
    join_shard_account,
)
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.errors import BocError, TvmError

INSTRUCTIONS = [
    *("00", "01", "20", "21", "30", "58", "60", "68", "70", "71", "7F", "80FF", "8212", "83FF"),
    *("A0", "A1", "A4", "A8", "A904", "AD", "AE", "B600", "B8", "C0", "C8", "C9", "CC", "CF16"),
    *("CF23", "D0", "D1", "D307", "D4", "D739", "D748", "D8", "D9", "DB31", "DC", "DE", "E2"),
    *("E4", "E6", "E8", "EA", "ED43", "ED44", "ED47", "ED54", "ED57", "EDF0", "F2FF", "F2F0"),
    *("F400", "F40A", "F412", "F480", "F800", "F810", "F823", "F830", "F900", "F902", "F910"),
    *("6D", "6E", "6F01", "6F02", "6F12", "6F22", "6F88", "6F8C", "6FA1", "900000", "9120", "9230"),
    *("92D8D8", "9320EA20", "91EA", "93C8CCC9", "926F01", "FB00", "FB04", "FEF0", "FF00"),
]
CODES = st.lists(st.sampled_from(INSTRUCTIONS), max_size=60).map("".join) | st.binary(
    max_size=120
).map(bytes.hex)
KINDS = st.sampled_from([1, 2, 3, 4])


@st.composite
def trees(draw: st.DrawFn) -> bytes:
    """Draw code of several cells: ordinary ones, shared ones and exotic ones."""
    tree = CellTree()
    cells: list[int] = []
    for _ in range(draw(st.integers(1, 6))):
        builder = CellBuilder(tree)
        exotic = draw(st.integers(0, 5)) == 0
        code = draw(CODES)[:240]
        if exotic:
            code = f"{draw(KINDS):02x}" + draw(st.binary(min_size=32, max_size=70)).hex()[:140]
        builder.store_uint(int(code or "0", 16), len(code) * 4)
        for _ in range(draw(st.integers(0, 4)) if cells else 0):
            builder.store_ref(draw(st.sampled_from(cells)))
        try:
            cells.append(builder.end(exotic=exotic))
        except BocError:
            cells.append(CellBuilder(tree).end())
    return serialize_boc(tree, cells[-1:])


def run(pool: TvmPool, call: GetMethodCall) -> Outcome | TvmError:
    start_s = time.monotonic()
    try:
        return pool.run_get_method(call)
    except TvmError as error:
        return error
    finally:
        assert time.monotonic() - start_s < 20 + 30


@settings(max_examples=100, deadline=None)
@given(trees(), st.lists(VALUES, max_size=3), st.booleans())
def test_generated_programs_end(
    pool: TvmPool,
    code: bytes,
    stack: list[Any],
    library: bool,  # noqa: FBT001 - drawn
) -> None:
    """Any program ends, and then a known one runs."""
    ended = run(pool, make_call(code, *stack, libraries=code if library else None))
    if isinstance(ended, Outcome):
        assert 0 <= ended.gas_used <= 4_000_000
    assert pool.run_get_method(make_call("75")).stack == (5,)


@pytest.fixture(scope="module")
def config(demo_lake: Path) -> bytes:
    """The configuration of a genuine network."""
    replay = Replay(demo_lake)
    asked = replay.describe(replay.transactions("workchain = 0")[0])
    assert asked is not None
    return asked[0].config


def deploy(code: bytes, data: bytes, body: bytes) -> bytes:
    """Return an internal message with value that deploys a contract at its address."""
    tree = CellTree()
    parts = [graft(tree, parse_boc(boc)) for boc in (code, data, body)]
    init = CellBuilder(tree).store_uint(0, 2)
    state = init.store_maybe_ref(parts[0]).store_maybe_ref(parts[1]).store_bit(0).end()
    builder = CellBuilder(tree).store_uint(0b0110, 4)  # int_msg_info, no IHR, to be bounced
    builder.store_uint(0b100, 3).store_int(0, 8).store_uint(1, 256)
    builder.store_uint(0b100, 3).store_int(0, 8).store_bytes(tree.hash(state))
    builder.store_coins(10**9).store_bit(0).store_coins(0).store_coins(0)
    builder.store_uint(0, 64).store_uint(0, 32)
    builder.store_uint(0b11, 2).store_ref(state).store_bit(1).store_ref(parts[2])
    return serialize_boc(tree, [builder.end()])


def check_emulation(pool: TvmPool, config: bytes, message: bytes) -> bool:
    """Deploy a contract with any code, then a known one; return whether its code ran."""
    asked = EmulationCall(
        account=join_shard_account(None, bytes(32), 0),
        message=message,
        config=config,
        now=1_700_000_000,
        lt=1_000_000,
    )
    made = None
    with suppress(TvmError):
        made = pool.emulate(asked)
    assert pool.run_get_method(make_call("75")).stack == (5,)
    if not isinstance(made, Emulated):
        return False
    row, _messages = decode_transaction(made.transaction)
    return row["compute_gas_used"] is not None


MESSAGES = {"code": trees(), "data": trees(), "body": trees()}


@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=pytest.mark.long)])
def test_generated_messages_end(pool: TvmPool, config: bytes, count: int) -> None:
    @settings(max_examples=count, deadline=None)
    @given(**MESSAGES)
    def check(code: bytes, data: bytes, body: bytes) -> None:
        check_emulation(pool, config, deploy(code, data, body))

    check()


@pytest.mark.parametrize(
    "name", ["ENDLESS_LOOP", "PUSH_FOREVER", "CALL_ITSELF", "RECURSE", "DEEPEN_CELL"]
)
def test_contracts_without_end(pool: TvmPool, config: bytes, name: str) -> None:
    builder = CellBuilder()
    code = bytes.fromhex(getattr(programs, name))
    program = serialize_boc(builder.tree, [builder.store_bytes(code).end()])
    nothing = serialize_single(b"\0\0")
    assert check_emulation(pool, config, deploy(program, nothing, nothing))


@pytest.mark.parametrize(
    ("name", "exit_code"),
    [
        ("ENDLESS_LOOP", -14),
        ("PUSH_FOREVER", -14),
        ("CALL_ITSELF", -14),
        ("RECURSE", -14),
        ("DOUBLE_FOREVER", -14),
        ("NEST_FOREVER", -14),
        ("DEEPEN_CELL", 8),
    ],
)
def test_programs_without_end(pool: TvmPool, name: str, exit_code: int) -> None:
    ended = pool.run_get_method(make_call(getattr(programs, name)))
    assert ended.exit_code == exit_code
    assert len(ended.stack) == 1
