"""Temporary packages of a genuine node continue its archive, and never with forks."""

import os
import shutil
from contextlib import closing
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from tests.damage import flip_file
from tests.ingest.source.node.nodewriter import NodeWriter, entry_name, open_store
from tonlake.ingest.blocks import BlockId, McBundle
from tonlake.ingest.errors import BlockCorrupt, BlockNeverHad, BlockNotYet
from tonlake.ingest.source.node import recent
from tonlake.ingest.source.node.source import open_node

INDEX = "archive/packages/arch0000/archive.00000.index"
SHORT_BYTES = 198
ARCHIVED = 118
"""What the demo node's index knows when its manifest is cut to ``SHORT_BYTES``."""

PACKAGES = "files/packages"
NEWEST = f"{PACKAGES}/temp.archive.1795237200.pack"


@pytest.fixture
def cut(demo_node: Path, tmp_path: Path) -> Path:
    """The demo node with an archive that ends halfway."""
    db_dir = tmp_path / "db"
    shutil.copytree(demo_node, db_dir)
    (manifest,) = (db_dir / INDEX).glob("MANIFEST-*")
    os.truncate(manifest, SHORT_BYTES)
    return db_dir


def write_client(db_dir: Path, block_id: BlockId) -> None:
    """Set the shard client of a stopped node."""
    writer = NodeWriter.__new__(NodeWriter)
    with closing(open_store(db_dir / "state")) as writer.state:
        writer.write_shard_client(block_id)


def test_a_shortened_manifest_loses_nothing_that_temporary_packages_have(
    demo_node: Path, cut: Path
) -> None:
    with closing(open_node(demo_node, proofs=True)) as source:
        expected = [source.read_bundle(seqno) for seqno in range(1, 239)]
    with closing(open_node(cut, proofs=True)) as source:
        assert source._archive.find_last() == ARCHIVED
        assert (source.first_mc_seqno(), source.last_mc_seqno()) == (1, 238)
        assert [source.read_bundle(seqno) for seqno in range(1, 239)] == expected
        assert source.find_head(200) is not None
        with pytest.raises(BlockNotYet):
            source.read_bundle(239)


def test_without_them_what_the_manifest_forgot_is_missing(
    cut: Path, bundles: list[McBundle]
) -> None:
    shutil.rmtree(cut / PACKAGES)
    with closing(open_node(cut)) as source:
        assert (source.first_mc_seqno(), source.last_mc_seqno()) == (1, 238)
        assert source.read_bundle(ARCHIVED) == bundles[ARCHIVED - 1]
        for mc_seqno in (ARCHIVED + 1, 238):
            with pytest.raises(BlockNeverHad, match=f"{INDEX}: the index has no such block"):
                source.read_bundle(mc_seqno)


def test_a_few_blocks_that_an_index_forgot_are_missing_as_well(
    cut: Path, bundles: list[McBundle]
) -> None:
    """The packages show that this is no copy of a running node."""
    shutil.rmtree(cut / PACKAGES)
    write_client(cut, bundles[ARCHIVED + 2].blocks[0].id)
    with closing(open_node(cut)) as source:
        assert source.last_mc_seqno() == ARCHIVED + 3
        with pytest.raises(BlockNeverHad, match="the index has no such block"):
            source.read_bundle(ARCHIVED + 1)


def test_signed_blocks_behind_the_shard_client_are_read(cut: Path, bundles: list[McBundle]) -> None:
    write_client(cut, bundles[199].blocks[0].id)
    with closing(open_node(cut)) as source:
        assert source.last_mc_seqno() == 238
        assert [source.read_bundle(seqno) for seqno in (150, 200, 201, 238)] == [
            bundles[at] for at in (149, 199, 200, 237)
        ]
        head = source.find_head(238)
        assert head is not None
        assert head.root_hash == bundles[237].blocks[0].id.root_hash
        source.refresh()
        assert source.last_mc_seqno() == 238


def test_blocks_that_no_known_validator_signed_are_not(cut: Path, bundles: list[McBundle]) -> None:
    write_client(cut, bundles[199].blocks[0].id)
    shutil.rmtree(cut / "archive/states")
    shutil.rmtree(cut / "static")
    with closing(open_node(cut)) as source:
        assert source.last_mc_seqno() == 200


def test_a_chain_that_does_not_lead_to_the_archive_is_another_one(
    cut: Path, bundles: list[McBundle]
) -> None:
    """Blocks from the first missing one on are unusable: nothing is known to follow."""
    path = cut / NEWEST
    lost = bundles[179].blocks[0]
    data = path.read_bytes()
    path.write_bytes(data.replace(lost.data, bytes(len(lost.data))))
    with closing(open_node(cut)) as source:
        assert source.last_mc_seqno() == 238
        for mc_seqno in (ARCHIVED + 1, 179):
            with pytest.raises(BlockNeverHad, match="the index has no such block"):
                source.read_bundle(mc_seqno)
        with pytest.raises(BlockCorrupt, match="SHA-256"):
            source.read_bundle(180)
        assert source.read_bundle(182) == bundles[181]


def test_a_damaged_block_behind_the_shard_client_is_not_passed_over(
    cut: Path, bundles: list[McBundle]
) -> None:
    write_client(cut, bundles[199].blocks[0].id)
    path = cut / NEWEST
    name = entry_name(bundles[219].blocks[0].id).encode()
    flip_file(path, path.read_bytes().index(name) + len(name) + 99)
    with closing(open_node(cut)) as source:
        assert source.last_mc_seqno() == 238
        assert source.read_bundle(219) == bundles[218]
        assert source.read_bundle(222) == bundles[221]
        with pytest.raises(BlockCorrupt, match=r"temp.archive.1795237200.pack at byte \d+: .*SHA"):
            source.read_bundle(220)


def test_a_missing_shard_block_ends_what_is_there(cut: Path, bundles: list[McBundle]) -> None:
    path = cut / NEWEST
    long = next(bundle for bundle in bundles[150:] if len(bundle.blocks) > 1)
    name = entry_name(long.blocks[1].id).encode()
    path.write_bytes(path.read_bytes().replace(name, name.swapcase()))
    with closing(open_node(cut)) as source:
        assert source.last_mc_seqno() == 238
        assert source.read_bundle(long.mc_seqno - 1) == bundles[long.mc_seqno - 2]
        with pytest.raises(BlockCorrupt, match=r"temp\.archive"):
            source.read_bundle(long.mc_seqno)
        assert source.read_bundle(238) == bundles[237]


def test_folders_that_cannot_be_opened_are_no_help(cut: Path) -> None:
    for folder in (cut / PACKAGES).glob("*.index"):
        for path in folder.glob("MANIFEST-*"):
            path.write_bytes(b"")
    with closing(open_node(cut)) as source:
        assert source.last_mc_seqno() == 238
        with pytest.raises(BlockNeverHad):
            source.read_bundle(ARCHIVED + 1)


def test_signed_blocks_are_found_as_blocks_or_candidates(
    demo_node: Path, bundles: list[McBundle]
) -> None:
    never = BlockNeverHad("only a candidate", block=bundles[-1].blocks[1].id)
    with closing(open_node(demo_node)) as source:
        for bundle in bundles[-50:]:
            for block in bundle.blocks[1:]:
                assert source.find_signed(block.id) == block
                with mock.patch.object(recent, "read_block", side_effect=never):
                    assert source.find_signed(block.id) == block
        unknown = msgspec.structs.replace(bundles[-1].blocks[1].id, file_hash=bytes(32))
        assert source.find_signed(unknown) is None
        with (
            mock.patch.object(recent.TemporaryPackage, "read_candidate", return_value=b"?"),
            pytest.raises(BlockCorrupt, match="the SHA-256 of the 1 bytes"),
        ):
            source.find_signed(unknown)
