"""Stack values as cells, read back by another implementation."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytoniq_core import Cell, Slice
from pytoniq_core.tlb.vm_stack import VmStack, VmTuple

from tests.ingest.derive.tvm.values import SHOWN, normalize
from tonlake.ingest.decode.cell.writer import serialize_single
from tonlake.ingest.derive.tvm.call import StackLimits, TvmCell, TvmNan, TvmOpaque, TvmSlice
from tonlake.ingest.derive.tvm.machine.vmstack import read_stack, write_stack, write_value
from tonlake.ingest.errors import BocError, TvmStackDeep, TvmStackLarge

BAG = serialize_single(b"\x00\x04\xab\xcd")


def simplify(value: Any) -> Any:
    """Return a value of pytoniq in our form; a pair that ends in null is one of our lists."""
    if isinstance(value, VmTuple):
        return tuple(simplify(item) for item in value.list)
    if isinstance(value, Slice):
        return TvmSlice(value.to_cell().to_boc())
    return TvmCell(value.to_boc()) if isinstance(value, Cell) else value


def pair_up(value: Any) -> Any:
    """Return a value with its lists as pairs, and its bags as pytoniq writes them."""
    if isinstance(value, list):
        pairs: Any = None
        for item in reversed(value):
            pairs = (pair_up(item), pairs)
        return pairs
    if isinstance(value, tuple):
        return tuple(map(pair_up, value))
    if isinstance(value, TvmCell | TvmSlice):
        return type(value)(Cell.one_from_boc(value.boc).to_boc())
    return value


LIMITS = StackLimits(entries=1000, depth=100, boc_bytes=1 << 20)


@given(st.lists(SHOWN, max_size=6))
def test_stacks_are_read_back(values: list[Any]) -> None:
    boc = write_stack(values)
    assert read_stack(boc, LIMITS) == tuple(map(normalize, values))
    theirs = VmStack.deserialize(Cell.one_from_boc(boc).begin_parse())
    assert [simplify(value) for value in theirs] == [pair_up(value) for value in values]


def test_a_stack_of_the_node_is_read(shared: Path) -> None:
    path = shared / "node-2026" / "expected-contracts.json.gz"
    contracts = json.loads(gzip.decompress(path.read_bytes()))["first"]
    answers = contracts["v12"]["get"]
    assert answers, "the contract of instructions of version 12"
    for answer in answers.values():
        boc = base64.b64decode(answer["boc"])
        assert read_stack(boc, LIMITS) is not None


def test_a_stack_beyond_the_limits_is_refused() -> None:
    boc = write_stack([(1, 2, 3), [4] * 5])
    with pytest.raises(TvmStackLarge, match="values"):
        read_stack(boc, StackLimits(entries=5, depth=100, boc_bytes=100))
    with pytest.raises(TvmStackLarge, match="entries"):
        read_stack(boc, StackLimits(entries=1, depth=100, boc_bytes=100))
    with pytest.raises(TvmStackDeep, match="1 levels"):
        read_stack(boc, StackLimits(entries=50, depth=1, boc_bytes=100))
    with pytest.raises(TvmStackLarge, match="bytes"):
        read_stack(write_stack([TvmCell(BAG)]), StackLimits(entries=5, depth=5, boc_bytes=3))


def test_what_is_no_stack_is_refused() -> None:
    with pytest.raises(BocError):
        read_stack(serialize_single(b"\x00\x06\x00\x00\x01"), LIMITS)
    nan = serialize_single(b"\x00\x0a\x00\x00\x01\x02\xff")
    with pytest.raises(BocError):
        read_stack(nan, LIMITS)  # the rest of the stack is missing
    assert TvmNan() == TvmNan()


def test_values_without_a_representation() -> None:
    with pytest.raises(TypeError, match="TvmOpaque"):
        write_value(TvmOpaque())
