"""Archive packages alone: everything is found, and gaps are distinguished from damage."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.damage import flip_file
from tests.ingest.source.node.conftest import fingerprint, read_all, read_expected
from tests.ingest.source.node.nodewriter import encode_entry, entry_name
from tonlake.ingest.blocks import McBundle
from tonlake.ingest.errors import BlockCorrupt, BlockNeverHad, BlockNotYet, SourceError
from tonlake.ingest.source.node.packs import PackSource, list_packages

MAGIC = bytes.fromhex("01dd8fae")


@pytest.fixture
def folder(demo_node: Path, tmp_path: Path) -> Path:
    """The demo node's packages alone, in one folder."""
    for path in (demo_node / "archive/packages/arch0000").glob("*.pack"):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_demo_packages_give_the_same_bundles_as_the_node(
    demo_node: Path, bundles: list[McBundle]
) -> None:
    before = fingerprint(demo_node)
    source = PackSource(demo_node)
    assert (source.first_mc_seqno(), source.last_mc_seqno()) == (1, 238)
    assert [source.read_bundle(bundle.mc_seqno) for bundle in bundles] == bundles
    assert source.zero_states() == ()
    assert source.describe() == {
        "kind": "packs",
        "first_package": "0",
        "last_package": "200",
        "files": "6",
    }
    source.close()
    assert fingerprint(demo_node) == before


def test_genuine_packages_give_exactly_the_expected_blocks(
    genuine: Callable[[str], tuple[Path, Path]],
) -> None:
    db_dir, facts = genuine("live-copy")
    source = PackSource(db_dir / "archive")
    assert source.last_mc_seqno() == 903
    expected = {one: at for one, at in read_expected(facts).items() if at <= 903}
    assert read_all(source) == expected


def test_packages_of_the_main_network(shared: Path) -> None:
    expected = {}
    for path in (shared / "data/expected/packs").glob("rn_archive*"):
        for row in json.loads(path.read_text(encoding="utf-8")):
            if "block" in row:
                expected[row["name"]] = row["sha256"]
    found = read_all(PackSource(shared / "data/packs"))
    assert {entry_name(one): one.file_hash.hex() for one in found} == expected
    assert len(found) == 805
    assert set(found.values()) == set(range(1, 200))


def test_only_archive_packages_are_listed(tmp_path: Path) -> None:
    listed = ["archive.00000.pack", "a/archive.00000.0_8000000000000000.pack"]
    listed += ["archive.123456.-1:8000000000000000.pack", "copy_archive.00100.pack"]
    other = ["temp.archive.1795237200.pack", "key.archive.000000.pack", "archive.00000.pack.part"]
    for name in [*listed, *other]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = list_packages(tmp_path)
    assert list(found) == [0, 100, 123456]
    names = {str(path.relative_to(tmp_path)) for paths in found.values() for path in paths}
    assert names == set(listed)


def test_a_folder_without_packages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=f"{tmp_path} holds no archive packages"):
        PackSource(tmp_path)


@pytest.mark.parametrize("lost", ["", ".0:8000000000000000"])
def test_a_lost_package_is_a_gap(folder: Path, bundles: list[McBundle], lost: str) -> None:
    (folder / f"archive.00100{lost}.pack").unlink()
    source = PackSource(folder)
    assert (source.first_mc_seqno(), source.last_mc_seqno()) == (1, 238)
    for seqno in (1, 99, 201, 238):
        if seqno != 201 or lost:
            assert source.read_bundle(seqno) == bundles[seqno - 1]
    with pytest.raises(BlockNeverHad):
        source.read_bundle(150)
    # The first block behind the gap begins a package: all in that is committed from here on.
    assert source.read_bundle(200) == bundles[199]


def test_a_block_behind_a_lost_masterchain_block_is_not_guessed(
    folder: Path, bundles: list[McBundle]
) -> None:
    path = folder / "archive.00000.pack"
    lost = bundles[49].blocks[0]
    entry = encode_entry(entry_name(lost.id), lost.data)
    path.write_bytes(path.read_bytes().replace(entry, b""))
    source = PackSource(folder)
    assert source.read_bundle(49) == bundles[48]
    assert source.read_bundle(52) == bundles[51]
    with pytest.raises(BlockNeverHad, match=r",50\) in packages 0"):
        source.read_bundle(50)
    with pytest.raises(BlockNeverHad, match=r",51\): .* without the block before it"):
        source.read_bundle(51)


def test_packages_that_begin_later_begin_with_a_package(
    folder: Path, bundles: list[McBundle]
) -> None:
    for path in folder.glob("archive.00000*"):
        path.unlink()
    source = PackSource(folder)
    assert source.first_mc_seqno() == 100
    assert [source.read_bundle(n) for n in range(100, 239)] == bundles[99:]
    with pytest.raises(BlockNeverHad, match="begin with number 100"):
        source.read_bundle(99)


def test_a_cut_end_is_not_yet_and_is_read_on(folder: Path, bundles: list[McBundle]) -> None:
    path = folder / "archive.00200.pack"
    whole = path.read_bytes()
    size = len(whole) - len(bundles[237].blocks[0].data) - 1
    os.truncate(path, size)
    source = PackSource(folder)
    assert source.last_mc_seqno() == 237
    with pytest.raises(BlockNotYet, match=r"archive.00200.pack at byte \d+: not found; the file"):
        source.read_bundle(238)
    path.write_bytes(whole)
    source.refresh()
    assert source.last_mc_seqno() == 238
    assert source.read_bundle(238) == bundles[237]


def test_a_cut_in_front_of_later_packages_is_corrupt(folder: Path) -> None:
    path = folder / "archive.00100.pack"
    os.truncate(path, path.stat().st_size - 9)
    source = PackSource(folder)
    assert source.last_mc_seqno() == 238
    with pytest.raises(BlockCorrupt, match=r"archive.00100.pack at byte \d+"):
        source.read_bundle(199)


def test_new_packages_are_seen(folder: Path, bundles: list[McBundle]) -> None:
    later = folder / "later"
    later.mkdir()
    for path in folder.glob("archive.00200*"):
        path.rename(later / path.with_suffix(".part").name)
    source = PackSource(folder)
    assert source.last_mc_seqno() == 199
    with pytest.raises(BlockNotYet, match="end before it"):
        source.read_bundle(200)
    for path in list(later.iterdir()):
        path.rename(path.with_suffix(".pack"))
    source.refresh()
    assert source.last_mc_seqno() == 238
    assert source.read_bundle(200) == bundles[199]


def test_a_right_copy_elsewhere_heals_a_wrong_one(folder: Path, bundles: list[McBundle]) -> None:
    block = bundles[9].blocks[0]
    path = folder / "archive.00000.pack"
    flip_file(path, path.read_bytes().index(block.data) + 40, 4)
    source = PackSource(folder)
    with pytest.raises(BlockCorrupt, match="SHA-256") as caught:
        source.read_bundle(10)
    assert (caught.value.block, caught.value.file) == (block.id, "archive.00000.pack")
    (folder / "more").mkdir()
    copy = MAGIC + encode_entry(entry_name(block.id), block.data)
    (folder / "more/archive.00000.pack").write_bytes(copy)
    source.refresh()
    assert source.read_bundle(10) == bundles[9]


@pytest.mark.parametrize("seqno", [229, 238])
def test_a_damaged_block_is_not_passed_over(
    folder: Path, bundles: list[McBundle], seqno: int
) -> None:
    path = folder / "archive.00200.pack"
    block = bundles[seqno - 1].blocks[0]
    entry = encode_entry(entry_name(block.id), block.data)
    flip_file(path, path.read_bytes().index(entry))
    source = PackSource(folder)
    assert source.last_mc_seqno() == 238
    with pytest.raises(BlockCorrupt, match=r"archive.00200.pack at byte \d+: .*no entry begins"):
        source.read_bundle(seqno)


@pytest.mark.parametrize("cut", [5, 20, -50])
@pytest.mark.parametrize("kind", ["block", "proof"])
def test_what_a_crash_left_in_the_middle_is_passed_over(
    folder: Path, bundles: list[McBundle], kind: str, cut: int
) -> None:
    path = folder / "archive.00200.pack"
    block = bundles[219].blocks[0]
    whole = path.read_bytes()
    at = whole.index(encode_entry(entry_name(block.id), block.data))
    torn = encode_entry(entry_name(block.id, kind), block.data)[:cut]
    path.write_bytes(whole[:at] + torn + whole[at:])
    source = PackSource(folder)
    assert source.last_mc_seqno() == 238
    assert [source.read_bundle(number) for number in range(200, 239)] == bundles[199:]


def test_two_blocks_with_one_seqno_are_refused(folder: Path, bundles: list[McBundle]) -> None:
    one = bundles[9].blocks[0]
    other = bundles[10].blocks[0]
    false = type(one.id)(-1, one.id.shard, 10, other.id.root_hash, other.id.file_hash)
    copy = MAGIC + encode_entry(entry_name(false), other.data)
    (folder / "x_archive.00000.pack").write_bytes(copy)
    with pytest.raises(BlockCorrupt, match="two different blocks"):
        PackSource(folder).read_bundle(10)


def test_block_lists_of_few_packages_are_kept(folder: Path, bundles: list[McBundle]) -> None:
    source = PackSource(folder, open_groups=1)
    assert [source.read_bundle(n) for n in (150, 50, 238)] == [
        bundles[149],
        bundles[49],
        bundles[237],
    ]
    assert len(source._groups) == 1


def test_a_newest_block_without_a_shard_block_is_not_passed_over(
    folder: Path, bundles: list[McBundle]
) -> None:
    newest = bundles[-1]
    lost = newest.blocks[1]
    for path in folder.glob("archive.00200*"):
        data = path.read_bytes()
        entry = encode_entry(entry_name(lost.id), lost.data)
        path.write_bytes(data.replace(entry, b""))
    source = PackSource(folder)
    assert source.last_mc_seqno() == newest.mc_seqno
    assert source.read_bundle(newest.mc_seqno - 1) == bundles[-2]
    with pytest.raises(BlockNotYet, match="238 commits it, but the packages end before") as caught:
        source.read_bundle(newest.mc_seqno)
    assert caught.value.block == lost.id
