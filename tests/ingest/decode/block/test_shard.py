"""Shard tops of masterchain blocks."""

from typing import Any

import pytest

from tests.ingest.networks import Network
from tonlake.ingest.decode.block.header import _iter_shards, read_mc_extra, read_shard_tops
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.errors import DecodeError


def test_tops_are_blocks_of_the_network(network: Network) -> None:
    """Every top is a block that was committed then or before, with the same hashes and times."""
    blocks = {
        (fact["workchain"], fact["shard"], fact["seqno"]): fact for fact in network.facts("blocks")
    }
    for bundle in network.bundles:
        tops = read_shard_tops(parse_boc(bundle.blocks[0].data, check_crc=False))
        for top in tops:
            if not top.seqno:
                continue
            fact = blocks[top.workchain, top.shard, top.seqno]
            assert fact["mc_seqno"] <= bundle.mc_seqno
            assert (top.root_hash.hex(), top.file_hash.hex()) == (
                fact["root_hash"],
                fact["file_hash"],
            )
            assert (top.start_lt, top.end_lt) == (fact["start_lt"], fact["end_lt"])
            assert top.gen_utime == fact["gen_utime"]
        prefixes = [top.shard % 2**64 for top in tops]
        assert prefixes == sorted(prefixes)
        assert sum(2 * (prefix & -prefix) for prefix in prefixes) == 2**64


def test_tops_at_the_end_equal_the_node_s_answer(network: Network) -> None:
    tops = read_shard_tops(parse_boc(network.bundles[-1].blocks[0].data))
    assert sorted((top.workchain, top.shard, top.seqno, top.root_hash.hex()) for top in tops) == (
        sorted(
            (top["workchain"], top["shard"], top["seqno"], top["root_hash"])
            for top in network.summary["shards_at_last_mc_block"]
        )
    )


def test_the_configuration_is_in_key_blocks_alone(network: Network) -> None:
    for fact, bundle in zip(_mc_facts(network), network.bundles, strict=True):
        extra = read_mc_extra(parse_boc(bundle.blocks[0].data, check_crc=False))
        assert extra.key_block == (extra.config is not None) == bool(fact["key_block"])


def _mc_facts(network: Network) -> list[dict[str, Any]]:
    facts = (fact for fact in network.facts("blocks") if fact["workchain"] == -1)
    return sorted(facts, key=lambda fact: fact["seqno"])


def test_a_shard_block_names_no_tops(demo: Network) -> None:
    block = next(bundle for bundle in demo.bundles if len(bundle.blocks) > 1).blocks[1]
    with pytest.raises(DecodeError, match="not a masterchain block"):
        read_shard_tops(parse_boc(block.data))


def _build_tree(depth: int) -> tuple[CellBuilder, int]:
    """Build a BinTree that goes left ``depth`` times."""
    builder = CellBuilder()
    leaf = CellBuilder(builder.tree).store_bit(0).end()
    cell = leaf
    for _ in range(depth):
        cell = CellBuilder(builder.tree).store_bit(1).store_ref(cell).store_ref(leaf).end()
    return builder, cell


def test_shards_of_an_uneven_tree_come_left_to_right() -> None:
    builder, root = _build_tree(3)
    shards = [f"{shard:016x}" for shard, _ in _iter_shards(builder.tree, root)]
    assert shards == ["1000000000000000", "3000000000000000", "6000000000000000", "c" + "0" * 15]


def test_a_tree_of_60_forks_is_the_deepest() -> None:
    builder, root = _build_tree(60)
    shards = [shard for shard, _ in _iter_shards(builder.tree, root)]
    assert len(shards) == 61
    assert shards[0] == 8
    builder, root = _build_tree(61)
    with pytest.raises(DecodeError, match="deeper than 60"):
        list(_iter_shards(builder.tree, root))


def test_a_tree_that_shares_its_cells_over_and_over_is_refused() -> None:
    builder = CellBuilder()
    cell = CellBuilder(builder.tree).store_bit(0).end()
    for _ in range(50):
        cell = CellBuilder(builder.tree).store_bit(1).store_ref(cell).store_ref(cell).end()
    with pytest.raises(DecodeError, match="shared too often"):
        list(_iter_shards(builder.tree, cell))
