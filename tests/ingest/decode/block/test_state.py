"""Tops of shard states, whole and on both sides of an update."""

import pytest

from tests.ingest.networks import Network
from tonlake.ingest.decode.block.header import read_parts
from tonlake.ingest.decode.block.state import (
    iter_shard_accounts,
    read_config,
    read_state,
    read_state_sides,
)
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.errors import DecodeError

SPLIT_STATE = 0x5F327DA5


def test_both_states_before_a_merge(main: Network) -> None:
    """The old side of a block after a merge is a split_state of the blocks it names."""
    merged = {
        (fact["workchain"], fact["shard"], fact["seqno"])
        for fact in main.facts("blocks")
        if fact["after_merge"]
    }
    blocks = [raw for bundle in main.bundles for raw in bundle.blocks]
    blocks = [raw for raw in blocks if (raw.id.workchain, raw.id.shard, raw.id.seqno) in merged]
    assert len(blocks) == main.summary["counts"]["blocks_after_merge"]
    for raw in blocks:
        tree = parse_boc(raw.data, check_crc=False)
        old, new = tree.refs(read_parts(tree).state_update)
        left, right = read_state_sides(tree, old)
        half = (raw.id.shard & -raw.id.shard) >> 1
        assert (left.shard, right.shard) == (_sign(raw.id.shard - half), _sign(raw.id.shard + half))
        assert max(left.seqno, right.seqno) == raw.id.seqno - 1
        assert read_state(tree, new).seqno == raw.id.seqno


def _sign(shard: int) -> int:
    return (shard + 2**63) % 2**64 - 2**63


def test_nested_split_states_are_refused() -> None:
    builder = CellBuilder()
    cell = builder.store_uint(SPLIT_STATE, 32).end()
    for _ in range(1000):
        outer = CellBuilder(builder.tree).store_uint(SPLIT_STATE, 32)
        cell = outer.store_ref(cell).store_ref(cell).end()
    with pytest.raises(DecodeError, match="shard state"):
        read_state_sides(builder.tree, cell)


def test_a_zero_state_of_a_workchain(demo: Network) -> None:
    tree = parse_boc(next((demo.db / "archive" / "states").glob("zerostate_0_*")).read_bytes())
    state = read_state(tree, tree.roots[0])
    assert (state.workchain, state.shard, state.seqno) == (0, -(2**63), 0)
    assert list(iter_shard_accounts(tree, state.accounts)) == []
    assert read_config(tree, state) is None
