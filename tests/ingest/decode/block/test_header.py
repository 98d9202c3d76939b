"""Headers: compared with whole networks, and invalid cells."""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.damage import flip_bit
from tests.ingest.networks import Network
from tonlake.ingest.blocks import BlockId
from tonlake.ingest.decode import native
from tonlake.ingest.decode.block.block import read_mark
from tonlake.ingest.decode.block.header import (
    BlockHeader,
    _iter_shards,
    read_header,
    read_mc_extra,
    read_shard_ident,
    read_shard_tops,
)
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import copy_part
from tonlake.ingest.errors import BocError, DecodeError

FLAGS = ("after_merge", "before_split", "after_split", "want_split", "want_merge", "key_block")
NUMBERS = {
    "gen_utime": "gen_utime",
    "start_lt": "start_lt",
    "end_lt": "end_lt",
    "min_ref_mc_seqno": "min_ref_mc_seqno",
    "prev_key_block_seqno": "prev_key_block_seqno",
    "vert": "vert_seqno",
    "catchain_seqno": "gen_catchain_seqno",
}


def test_headers_equal_what_the_node_answers(network: Network) -> None:
    facts = {
        (fact["workchain"], fact["shard"], fact["seqno"]): fact for fact in network.facts("blocks")
    }
    splits = merges = 0
    for header, _ in network.headers:
        _check_header(header, facts[header.workchain, header.shard, header.seqno])
        splits += header.after_split
        merges += header.after_merge
    shards = network.summary["counts"]
    assert splits == shards["blocks_after_split"]
    assert merges == shards.get("blocks_after_merge", 0)


def _check_header(header: BlockHeader, fact: dict[str, Any]) -> None:
    for name in FLAGS:
        assert getattr(header, name) == bool(fact[name]), name
    for theirs, ours in NUMBERS.items():
        assert getattr(header, ours) == fact[theirs], theirs
    assert header.validator_list_hash_short % 2**32 == fact["validator_list_hash_short"] % 2**32
    assert [
        (block.workchain, block.shard, block.seqno, block.root_hash.hex(), block.file_hash.hex())
        for block in header.previous
    ] == [
        (block["workchain"], block["shard"], block["seqno"], block["root_hash"], block["file_hash"])
        for block in fact["prev"]
    ]


def test_states_follow_each_other(network: Network) -> None:
    """What a header calls the state after the block is what the next block starts from."""
    states = {
        (header.workchain, header.shard, header.seqno): header.state_root_hash
        for header, _ in network.headers
    }
    for header, old_hash in network.headers:
        if header.prev_seqno and not header.after_merge:
            assert old_hash == states[header.workchain, header.prev_shard, header.prev_seqno]


def test_version_and_capabilities_of_the_maker(shared: Path) -> None:
    block = shared / "data" / "blocks" / "mainnet_0_a000000000000000_54302208.boc"
    header = read_header(parse_boc(block.read_bytes()))
    assert (header.gen_software_version, header.gen_software_capabilities) == (11, 494)


def test_a_state_is_no_block(demo_facts: Path) -> None:
    with pytest.raises(DecodeError, match="block: constructor tag 9023afe2"):
        read_header(parse_boc((demo_facts / "zerostate.boc").read_bytes()))


@pytest.mark.parametrize("bits", [61, 63])
def test_a_shard_prefix_has_60_bits_at_most(bits: int) -> None:
    builder = CellBuilder().store_uint(0, 2).store_uint(bits, 6).store_uint(0, 32 + 64)
    cell = builder.end()
    with pytest.raises(DecodeError, match=f"prefix of {bits} bits"):
        read_shard_ident(builder.tree.slice(cell))


def test_a_block_that_lost_its_end_is_an_error_of_its_own(demo: Network) -> None:
    tree = parse_boc(demo.bundles[0].blocks[0].data)
    info = tree.links[tree.roots[0]][0]
    tree.cells[info] = tree.cells[info][:1] + b"\x40" + tree.cells[info][2:34]
    with pytest.raises(BocError):
        read_header(tree)


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


@pytest.mark.skipif(not native.is_used(), reason="the extension is not installed")
def test_the_extension_reads_the_same_tops(network: Network) -> None:
    """It declines key blocks, and damaged ones that the reference rejects."""
    for bundle in network.bundles:
        data = bundle.blocks[0].data
        tree = parse_boc(data, check_crc=False)
        found = native.read_tops(data, with_extra=True)
        mark = read_mark(tree)
        assert (found is None) == (mark.version is not None)
        if found is not None:
            tops = [(BlockId(*fields), by) for fields, by in found[1]]
            assert tops == [(top.id, top.reg_mc_seqno) for top in read_shard_tops(tree)]
            extra = copy_part(tree, read_mc_extra(tree).cell)
            assert (found[0], found[2]) == (mark.before, extra)
        for bit in random.Random(bundle.mc_seqno).sample(range(8 * len(data)), 20):  # noqa: S311
            damaged = flip_bit(data, bit)
            if native.read_tops(damaged) is not None:
                read_shard_tops(parse_boc(damaged, check_crc=False))


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
