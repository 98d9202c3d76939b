"""Values survive a round trip through the machine, and runs end with the right exit code."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.derive.tvm.programs import CONTINUATION, ENDLESS_LOOP, assemble, make_call, repeat
from tests.ingest.derive.tvm.replay import Replay, is_external, replay_all
from tests.ingest.derive.tvm.values import VALUES, normalize
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, append_cell
from tonlake.ingest.decode.cell.dictionary import build_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm import pool as pools
from tonlake.ingest.derive.tvm.call import (
    Emulated,
    EmulationCall,
    NotAccepted,
    TvmBuilder,
    TvmCell,
    TvmOpaque,
    TvmSlice,
)
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.derive.tvm.trace import build_external_message, read_destination, read_message
from tonlake.ingest.errors import TvmRefusal, TvmStackDeep, TvmStackLarge
from tonlake.ingest.settings import TvmSettings


@settings(max_examples=60, deadline=None)
@given(stack=st.lists(VALUES, max_size=4))
def test_an_empty_program_leaves_the_stack(pool: TvmPool, stack: list[Any]) -> None:
    outcome = pool.run_get_method(make_call("", *stack))
    assert outcome.exit_code == 0
    assert outcome.stack == tuple(normalize(value) for value in stack)


def test_gas(pool: TvmPool) -> None:
    assert pool.run_get_method(make_call("75")).gas_used == 23  # 18 and the implicit RET
    for limit in (None, 5000):
        outcome = pool.run_get_method(make_call(ENDLESS_LOOP, gas_limit=limit))
        assert outcome.exit_code == -14
        most = limit or 4_000_000
        assert most < outcome.gas_used <= most + 10  # as in the node: what was asked for


def test_kinds_of_values(pool: TvmPool) -> None:
    cell, continuation = pool.run_get_method(make_call(CONTINUATION)).stack
    assert (cell, continuation) == (TvmCell(assemble("")), TvmOpaque())
    whole = TvmSlice(assemble("AABB"))
    rest, number = pool.run_get_method(make_call("D30701", whole)).stack  # 8 LDU, SWAP
    assert (rest, number) == (TvmSlice(assemble("BB")), 0xAA)
    (builder,) = pool.run_get_method(make_call("75C8CB07")).stack  # 5 PUSHINT, NEWC, 8 STU
    assert builder == TvmBuilder(assemble("05"))


def test_data_is_in_c4(pool: TvmPool) -> None:
    data = assemble("0123")
    assert pool.run_get_method(make_call("ED44", data=data)).stack == (TvmCell(data),)
    assert pool.run_get_method(make_call("ED44")).stack == (TvmCell(assemble("")),)


def test_nesting_and_size_are_bounded(pool: TvmPool) -> None:
    deep: Any = pool.run_get_method(make_call(repeat("70", 99, "6F01"))).stack
    depth = 0
    while isinstance(deep, tuple):
        (deep,) = deep
        depth += 1
    assert (deep, depth) == (0, 100)
    with pytest.raises(TvmStackDeep):
        pool.run_get_method(make_call(repeat("70", 100, "6F01")))
    with pytest.raises(TvmStackDeep):  # pairs in the second place of pairs, and no null at the end
        pool.run_get_method(make_call(repeat("70", 100, "71016F02")))
    with pytest.raises(TvmStackLarge):  # a few cells of memory, 2^60 values
        pool.run_get_method(make_call(repeat("70", 60, "206F02")))
    with pytest.raises(TvmStackLarge):
        pool.run_get_method(make_call(repeat("", 8001, "70")))


def test_a_list_may_be_long(pool: TvmPool) -> None:
    (items,) = pool.run_get_method(make_call(repeat("6D", 7900, "71016F02"))).stack
    assert items == [1] * 7900


@pytest.mark.usefixtures("tvm")
def test_bytes_of_cells_are_bounded() -> None:
    with mock.patch.object(pools, "RESULT_BYTES", 1000):
        small = TvmPool(TvmSettings(workers=1, wall_ms=20_000))
    cell = TvmCell(assemble("00" * 120))
    try:
        assert len(small.run_get_method(make_call(repeat("", 6, "20"), cell)).stack) == 7
        with pytest.raises(TvmStackLarge, match="over 1000 bytes"):
            small.run_get_method(make_call(repeat("", 7, "20"), cell))
    finally:
        small.close()


def _make_library_cell(library: bytes) -> bytes:
    builder = CellBuilder().store_uint(2, 8).store_bytes(library)
    return serialize_boc(builder.tree, [builder.end(exotic=True)])


def test_libraries_replace_library_cells(pool: TvmPool) -> None:
    tree = CellTree()
    code = CellBuilder(tree).store_uint(0x7A, 8).end()  # 10 PUSHINT
    library = tree.hash(code)
    names = build_hashmap(tree, [(int.from_bytes(library, "big"), code)], 256)
    boc = _make_library_cell(library)
    found = pool.run_get_method(make_call(boc, libraries=serialize_boc(tree, [names])))
    assert (found.exit_code, found.stack) == (0, (10,))
    assert pool.run_get_method(make_call(boc)).exit_code == 9


WALLET_V3 = bytes.fromhex("84dafa449f98a6987789ba232358072bc0f76dc4524002a5d0918b9a75d2d599")


@pytest.fixture(scope="module")
def replay(demo_lake: Path) -> Replay:
    return Replay(demo_lake)


def test_transactions_of_the_demo_node(replay: Replay, pool: TvmPool) -> None:
    """The tick-tock transactions of a few blocks are as good as all of them."""
    verdict = replay_all(replay, pool.emulate, "descr = 'ord' or mc_seqno < 30")
    assert verdict.others == []
    assert verdict.equal["external"] == 300
    assert verdict.equal.keys() == {"external", "ord", "tick_tock"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "count"), [("node/localnet-db", 22089), ("node/celldb-v2/localnet-celldbv2", 5008)]
)
def test_transactions_of_other_nodes(
    ingest_network: Callable[[str], Path], pool: TvmPool, name: str, count: int
) -> None:
    """Every transaction, including those of all external messages, with its fees."""
    verdict = replay_all(Replay(ingest_network(name)), pool.emulate)
    assert verdict.others == []
    assert verdict.equal.total() == count


def find_wallet_call(replay: Replay) -> EmulationCall:
    """Return an external call of a wallet of version 3."""
    wallets = {
        row["account"]
        for row in replay.rows("select account, code_hash from account_states")
        if row["code_hash"] == WALLET_V3
    }
    for row in replay.transactions("workchain = 0 and mc_seqno > 30"):
        asked = replay.describe(row) if row["account"] in wallets else None
        if asked is not None and is_external(asked[0].message):
            return asked[0]
    raise AssertionError


def spoil_signature(message: bytes) -> bytes:
    """Return the same message with another signature at the start of its body."""
    tree = parse_boc(read_message(message)["body"])
    value, bits = tree.bits(tree.roots[0])
    body = append_cell(tree, value ^ 1 << bits - 1, bits, tuple(tree.links[tree.roots[0]]))
    target = read_destination(message)
    return build_external_message(*target, serialize_boc(tree, [body]), (None, None))


def test_a_message_that_is_not_accepted(replay: Replay, pool: TvmPool) -> None:
    """A wallet rejects a replayed request; its exit code is known, and the next call is clean."""
    call = find_wallet_call(replay)
    made = pool.emulate(call)
    assert isinstance(made, Emulated)
    again = msgspec.structs.replace(call, account=made.account, lt=call.lt + 1_000_000)
    assert pool.emulate(again) == NotAccepted(33)
    assert pool.emulate(call) == made


def test_signatures_can_count_as_right(replay: Replay, pool: TvmPool) -> None:
    call = find_wallet_call(replay)
    spoilt = msgspec.structs.replace(call, message=spoil_signature(call.message or b""))
    assert pool.emulate(spoilt) == NotAccepted(35)
    trusting = msgspec.structs.replace(spoilt, ignore_chksig=True)
    assert isinstance(pool.emulate(trusting), Emulated)
    assert pool.emulate(spoilt) == NotAccepted(35), "the switch stayed on"


@pytest.mark.parametrize("part", ["account", "message", "config", "libraries"])
@pytest.mark.parametrize("boc", [b"", b"no bag"])
def test_invalid_cells_are_rejected(replay: Replay, pool: TvmPool, part: str, boc: bytes) -> None:
    asked = replay.describe(replay.transactions("workchain = 0")[0])
    assert asked is not None
    with pytest.raises(TvmRefusal):
        pool.emulate(msgspec.structs.replace(asked[0], **{part: boc}))
