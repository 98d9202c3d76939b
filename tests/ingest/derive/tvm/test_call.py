"""Calls: ids of get-methods, and the values of c7 read back by a contract, field by field."""

from typing import Any

import msgspec
import pytest

from tests.ingest.derive.tvm.programs import assemble, make_call
from tonlake.ingest.blocks import name_mc_block
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import build_hashmap, iter_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import (
    Context,
    NetworkConfig,
    PreviousBlocks,
    StackLimits,
    TvmSlice,
    join_params,
    make_version_param,
    method_id,
)
from tonlake.ingest.derive.tvm.machine.run import MAGIC, StackExporter, build_info, open_bag
from tonlake.ingest.derive.tvm.pool import TvmPool

CODE = assemble("75")
BLOCKS = [name_mc_block(seqno, bytes([seqno]) * 32, bytes([seqno + 1]) * 32) for seqno in range(16)]


def write_prices(since: list[int]) -> bytes:
    """Return ConfigParam 18; each price equals the time from which it applies."""
    tree = CellTree()
    root = build_hashmap(tree, [(t, t) for t in since], 32, lambda node, t: node.store_uint(t, 64))
    return serialize_boc(tree, [root])


def make_context(at: int | None, **changes: Any) -> Context:
    params = {18: write_prices([5, 100]), 20: assemble("20"), 43: assemble("43")}
    if at is not None:
        params[8] = make_version_param(at)
    context = Context(
        workchain=0,
        account=bytes(range(32)),
        now=77,
        balance=10**18,
        currencies={},
        config=join_params(params),
        version=NetworkConfig(b"", params).version,
        previous=PreviousBlocks(last=BLOCKS[:2], key=BLOCKS[3], hundredths=BLOCKS[:1]),
    )
    return msgspec.structs.replace(context, **changes)


def build_c7(context: Context) -> tuple[Any, ...]:
    """Return SmartContractInfo with its cells as bags."""
    limits = StackLimits(entries=1000, depth=100, boc_bytes=1 << 20)
    return StackExporter(limits).read(build_info(context, open_bag(CODE)))


def test_gas_of_a_precompiled_contract() -> None:
    """Gas usage of the code in ConfigParam 45, for which other codes have none."""
    context = make_context(11)
    assert build_c7(context)[16] is None
    tree = CellTree()
    root = build_hashmap(
        tree,
        [(int.from_bytes(open_bag(CODE).hash, "big"), 12345)],
        256,
        lambda node, gas: node.store_uint(0xB0, 8).store_uint(gas, 64),
    )
    listed = CellBuilder(tree).store_uint(0xC0, 8).store_maybe_ref(root).end()
    config = join_params({45: serialize_boc(tree, [listed])})
    context = msgspec.structs.replace(context, config=config)
    assert build_c7(context)[16] == 12345
    assert build_info(context, open_bag(assemble("76")))[16] is None


@pytest.mark.parametrize(
    ("version", "count"), [(None, 10), (3, 10), (4, 14), (5, 14), (6, 17), (9, 17), (11, 18)]
)
def test_length_by_global_version(version: int | None, count: int) -> None:
    c7 = build_c7(make_context(version))
    assert len(c7) == count
    assert c7[0] == MAGIC
    assert c7[1:7] == (0, 0, 77, 0, 0, 0)


def test_a_contract_reads_it(pool: TvmPool) -> None:
    context = make_context(11)
    code = "".join(f"F82{index:X}" for index in range(16))  # GETPARAM 0 to 15
    found = pool.run_get_method(make_call(code, context=context)).stack
    expected = list(build_c7(context)[:16])
    assert expected[7] == [10**18]  # a pair that ends in null reads as list
    expected[10] = found[10]  # the code is that of the account
    assert list(found) == expected
    in_msg = pool.run_get_method(make_call("F88111", context=context)).stack[0]  # GETPARAMLONG
    assert in_msg == (0, 0, TvmSlice(_two_zero_bits()), 0, 0, 0, 0, 0, None, None)


def _two_zero_bits() -> bytes:
    builder = CellBuilder().store_uint(0, 2)
    return serialize_boc(builder.tree, [builder.end()], crc32c=True)


def test_address_is_addr_std() -> None:
    tree = parse_boc(build_c7(make_context(11, workchain=-1))[8].boc)
    start = tree.slice(tree.roots[0])
    assert start.load_uint(3) == 0b100
    assert start.load_int(8) == -1
    assert start.load_bytes(32) == bytes(range(32))
    assert not start.bits_left


def test_extra_currencies_are_a_dictionary() -> None:
    amounts = {239: 5, 4294967279: 1 << 100, 1: 0}
    balance = build_c7(make_context(11, currencies=amounts))[7]
    tree = parse_boc(balance[1].boc)
    read = {key: value.load_var_uint(5) for key, value in iter_hashmap(tree, tree.roots[0], 32)}
    assert read == amounts


@pytest.mark.parametrize(("now", "since"), [(4, None), (5, 5), (99, 5), (100, 100), (1 << 31, 100)])
def test_storage_prices_of_the_moment(now: int, since: int | None) -> None:
    prices = build_c7(make_context(6, now=now))[14][0]
    if since is None:
        assert prices is None
    else:
        tree = parse_boc(prices.boc)
        assert tree.slice(tree.roots[0]).bits() == (since, 64)


def test_unpacked_configuration() -> None:
    unpacked = build_c7(make_context(6))[14]
    slices = [None, assemble("20"), None, None, None, assemble("43")]
    assert unpacked[1:] == tuple(None if boc is None else TvmSlice(boc) for boc in slices)
    bare = make_context(None, config=join_params({8: make_version_param(6)}), version=6)
    assert build_c7(bare)[14] == (None,) * 7


def test_previous_blocks() -> None:
    block = [-1, -(1 << 63), 3, *(int.from_bytes(bytes([n]) * 32, "big") for n in (3, 4))]
    last, key, hundredths = build_c7(make_context(9))[13]
    assert key == tuple(block)
    assert [block[2] for block in last] == [0, 1]
    assert [block[2] for block in hundredths] == [0]
    assert len(build_c7(make_context(8))[13]) == 2
    unknown = build_c7(make_context(9, previous=PreviousBlocks()))[13]
    assert unknown == (None, None, None)


def test_version_of_other_forms() -> None:
    assert NetworkConfig(b"", {}).version == 0
    assert NetworkConfig(b"", {8: assemble("00" * 13)}).version == 0
    assert NetworkConfig(b"", {8: make_version_param(11)}).version == 11


@pytest.mark.parametrize(
    ("name", "number"),
    [("seqno", 85143), ("get_public_key", 78748), ("get_jetton_data", 106029), ("", 65536)],
)
def test_ids_of_names(name: str, number: int) -> None:
    assert method_id(name) == number
