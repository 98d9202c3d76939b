"""A node's folder as a source: genuine databases, and all inconsistencies between files."""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.damage import flip, flip_file
from tests.ingest.conftest import GENUINE
from tests.ingest.source.node.conftest import fingerprint, read_all, read_expected
from tests.ingest.source.node.nodewriter import (
    NodeWriter,
    encode_id,
    entry_name,
    open_store,
    write_node,
)
from tonlake.ingest.blocks import BlockId, McBundle
from tonlake.ingest.errors import BlockCorrupt, BlockNeverHad, BlockNotYet, BlockPruned, SourceError
from tonlake.ingest.source.node.source import open_node

PACKAGES = "archive/packages/arch0000"


@pytest.fixture
def written(tmp_path: Path, bundles: list[McBundle]) -> Path:
    """Masterchain blocks 1 to 60 in slices that begin at 0, 20 and 40."""
    write_node(tmp_path / "node", bundles[:60], slices=(0, 20, 40))
    return tmp_path / "node"


def test_demo_node_gives_exactly_the_expected_blocks(demo_node: Path, demo_facts: Path) -> None:
    before = fingerprint(demo_node)
    with closing(open_node(demo_node)) as source:
        assert read_all(source) == read_expected(demo_facts)
        assert [state.workchain for state in source.zero_states()] == [-1, 0]
        assert source.zero_states()[0].data == (demo_facts / "zerostate.boc").read_bytes()
        assert source.zero_states()[1].data == (demo_facts / "basestate0.boc").read_bytes()
        assert source.describe()["shard_client"].startswith("(-1,8000000000000000,238):8cafe4fc")
        source.refresh()
        assert source.last_mc_seqno() == 238
    assert fingerprint(demo_node) == before


@pytest.mark.parametrize("name", GENUINE)
def test_genuine_nodes_give_exactly_the_expected_blocks(
    genuine: Callable[[str], tuple[Path, Path]], name: str
) -> None:
    db_dir, facts = genuine(name)
    before = fingerprint(db_dir)
    with closing(open_node(db_dir)) as source:
        last = source.last_mc_seqno()
        expected = {one: at for one, at in read_expected(facts).items() if at <= last}
        assert last == (903 if name == "live-copy" else max(read_expected(facts).values()))
        assert read_all(source) == expected
        assert len(source.zero_states()) == 2
    assert fingerprint(db_dir) == before


@pytest.mark.parametrize(
    ("form", "depth", "mark"),
    [("new", 0, ":"), ("new", 2, "_"), ("old", 0, "_"), ("oldest", 0, "_")],
)
def test_every_form_of_the_archive_gives_the_same_bundles(
    tmp_path: Path, bundles: list[McBundle], form: str, depth: int, mark: str
) -> None:
    slices, some = (0, 47, 111, 112), bundles[:130]  # the shard splits at 110
    write_node(tmp_path, some, form=form, depth=depth, mark=mark, slices=slices)
    with closing(open_node(tmp_path, open_indexes=2)) as source:
        assert (source.first_mc_seqno(), source.last_mc_seqno()) == (1, len(some))
        assert [source.read_bundle(bundle.mc_seqno) for bundle in some] == some


def test_blocks_behind_the_shard_client_are_not_yet(demo_node: Path) -> None:
    with closing(open_node(demo_node)) as source:
        with pytest.raises(BlockNotYet, match=r"\(-1,8000000000000000,239\) in state: .* 238"):
            source.read_bundle(239)
        with pytest.raises(BlockNeverHad, match=r",0\).*begins with masterchain block 1"):
            source.read_bundle(0)


def test_deleted_slices_are_pruned(written: Path, bundles: list[McBundle]) -> None:
    with closing(open_store(written / "files/globalindex")) as index:
        key = bytes.fromhex("3e0304a500000000379779bc379779bc")
        record = index.get(key)
        assert record is not None
        index[key] = record[:-4] + bytes.fromhex("b5757299")
    for path in (written / PACKAGES).glob("archive.00000*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with closing(open_node(written)) as source:
        assert (source.first_mc_seqno(), source.last_mc_seqno()) == (20, 60)
        # The first block that is left has shard blocks whose predecessors went with the slice.
        assert source.read_bundle(20) == bundles[19]
        with pytest.raises(
            BlockPruned, match=r",19\) in .*archive.00000.index: .* deleted slice 0"
        ):
            source.read_bundle(19)


@pytest.mark.parametrize(("slice_id", "held"), [(0, 21), (20, 19), (20, 41), (40, 39)])
def test_a_damaged_index_hides_only_the_blocks_of_its_slice(
    written: Path, bundles: list[McBundle], slice_id: int, held: int
) -> None:
    name = f"archive.{slice_id:05d}.index"
    flip_file(written / PACKAGES / name / "CURRENT", 3)
    with closing(open_node(written)) as source:
        assert (source.first_mc_seqno(), source.last_mc_seqno()) == (1, 60)
        assert source.read_bundle(held) == bundles[held - 1]
        assert source.zero_states() == ()
        with pytest.raises(BlockCorrupt, match=name):
            source.read_bundle(slice_id + 1)


def test_a_slice_without_files_is_pruned_and_one_without_index_is_corrupt(written: Path) -> None:
    shutil.rmtree(written / PACKAGES / "archive.00000.index")
    with closing(open_node(written)) as source:
        with pytest.raises(BlockCorrupt, match=r"archive.00000.index: the index is missing"):
            source.read_bundle(7)
        for path in (written / PACKAGES).glob("archive.00000*"):
            path.unlink()
        with pytest.raises(BlockPruned, match="slice 0 is gone"):
            source.read_bundle(7)


@pytest.mark.parametrize(
    ("left_out", "first", "reason"),
    [(0, 50, "begins with masterchain block 50"), (1, 51, "does not monitor this shard")],
)
def test_a_node_that_began_later_never_had_what_was_before(
    tmp_path: Path, bundles: list[McBundle], left_out: int, first: int, reason: str
) -> None:
    with closing(NodeWriter(tmp_path, slices=(50,))) as writer:
        shards = tuple(block.id for block in bundles[49].blocks[1:] * left_out)
        writer.write_bundle(bundles[49], leave_out=shards)
        for bundle in bundles[50:70]:
            writer.write_bundle(bundle)
    with closing(open_node(tmp_path)) as source:
        assert source.first_mc_seqno() == first
        with pytest.raises(BlockNeverHad, match=reason):
            source.read_bundle(first - 1)


def test_a_node_that_does_not_monitor_all_shards_is_refused(
    tmp_path: Path, bundles: list[McBundle]
) -> None:
    write_node(tmp_path, bundles[:40], leave_out=lambda one: tuple(b.id for b in one.blocks[1:]))
    with (
        closing(open_node(tmp_path)) as source,
        pytest.raises(
            SourceError, match=r"to 40 has all its shard blocks.* not monitor this shard"
        ),
    ):
        source.last_mc_seqno()


def test_a_shard_that_is_not_kept_is_noticed_where_nothing_of_it_is_committed(
    tmp_path: Path, bundles: list[McBundle]
) -> None:
    split = [bundle for bundle in bundles if bundle.mc_seqno > 120]

    def list_right(bundle: McBundle) -> tuple[BlockId, ...]:
        return tuple(b.id for b in bundle.blocks if b.id.shard & (1 << 64) - 1 == 0xC << 60)

    write_node(tmp_path, split, leave_out=list_right, slices=(121,))
    with closing(open_node(tmp_path)) as source, pytest.raises(SourceError, match="c000000000"):
        source.last_mc_seqno()


def test_a_shard_block_in_the_middle_of_a_chain_is_missed(
    tmp_path: Path, bundles: list[McBundle]
) -> None:
    long = next(bundle for bundle in bundles if len(bundle.blocks) > 3)
    lost = long.blocks[1].id
    write_node(tmp_path, bundles, leave_out=lambda _bundle: (lost,))
    with closing(open_node(tmp_path)) as source:
        assert source.last_mc_seqno() == len(bundles)
        with pytest.raises(BlockNeverHad) as caught:
            source.read_bundle(long.mc_seqno)
        assert caught.value.block == lost


def test_the_archive_may_end_before_the_shard_client(
    tmp_path: Path, bundles: list[McBundle]
) -> None:
    with closing(NodeWriter(tmp_path)) as writer:
        for bundle in bundles[:30]:
            writer.write_bundle(bundle)
        writer.write_bundle(bundles[30], leave_out=tuple(b.id for b in bundles[30].blocks[1:]))
        writer.write_shard_client(bundles[33].blocks[0].id)
        with closing(open_node(tmp_path)) as source:
            assert source.last_mc_seqno() == 34
            assert source.read_bundle(30) == bundles[29]
            for mc_seqno in (31, 32, 34):
                with pytest.raises(BlockNotYet, match="the archive ends with masterchain block 30"):
                    source.read_bundle(mc_seqno)
            for bundle in bundles[30:34]:
                writer.write_bundle(bundle)
            source.refresh()
            assert source.last_mc_seqno() == 34
            assert source.read_bundle(31) == bundles[30]


@pytest.mark.parametrize("ref", [None, 7, 9999])
def test_a_handle_that_contradicts_the_masterchain_is_noticed(
    tmp_path: Path, bundles: list[McBundle], ref: int | None
) -> None:
    committing = next(bundle for bundle in bundles[20:] if len(bundle.blocks) > 1)
    shard_block = committing.blocks[1]
    with closing(NodeWriter(tmp_path)) as writer:
        for bundle in bundles[: committing.mc_seqno + 10]:
            writer.write_bundle(bundle)
        key = bytes.fromhex("73d1577f") + encode_id(shard_block.id)
        value = writer.open_slices[0].get(key)
        assert value is not None
        flags = int.from_bytes(value[84:88], "little") & ~(1 << 23 if ref is None else 0)
        tail = b"" if ref is None else ref.to_bytes(4, "little")
        changed = value[:84] + flags.to_bytes(4, "little") + value[88:-4] + tail
        writer.open_slices[0][key] = changed
    with closing(open_node(tmp_path)) as source:
        expected = (
            (BlockNeverHad, "not copied completely")
            if ref is None
            else (BlockCorrupt, f"its handle says {ref}")
        )
        with pytest.raises(expected[0], match=expected[1]):
            source.read_bundle(committing.mc_seqno)


@pytest.mark.parametrize("suffix", ["", ".0:8000000000000000"])
def test_a_package_cut_at_any_byte_ends_the_archive_before_it(
    copied: Path, bundles: list[McBundle], suffix: str
) -> None:
    shutil.rmtree(copied / "files/packages")
    path = copied / PACKAGES / f"archive.00200{suffix}.pack"
    whole = path.read_bytes()
    for size in range(len(whole) - 1, len(whole) - 4000, -79):
        os.truncate(path, size)
        with closing(open_node(copied)) as source:
            assert source.last_mc_seqno() == 238
            with pytest.raises(BlockNotYet, match="archive ends with masterchain block 23") as end:
                source.read_bundle(238)
            last = int(str(end.value).split("masterchain block ")[1][:3])
            assert 230 < last < 238
            assert source.read_bundle(last) == bundles[last - 1]
            with pytest.raises(BlockNotYet, match=r"archive.00200.* at byte \d+: the file ends"):
                source.read_bundle(last + 1)
            path.write_bytes(whole)
            source.refresh()
            assert source.last_mc_seqno() == 238
            assert source.read_bundle(last + 1) == bundles[last]


def test_flipped_bits_in_packages_are_corrupt(copied: Path, bundles: list[McBundle]) -> None:
    name = f"{PACKAGES}/archive.00100.pack"
    path = copied / name
    whole = path.read_bytes()
    block = bundles[149].blocks[0]
    start = whole.index(block.data)
    entry = start - 8 - len(entry_name(block.id))
    with closing(open_node(copied)) as source:
        # Many bytes of the header and the name, and some of the data.
        for at in [*range(entry, start, 3), *range(start, start + len(block.data), 197)]:
            path.write_bytes(flip(whole, at, 1 << at % 8))
            with pytest.raises(BlockCorrupt) as caught:
                source.read_bundle(150)
            assert (caught.value.file, caught.value.offset) == (name, entry)
            assert str(caught.value.block) == str(block.id)
        assert source.last_mc_seqno() == 238


def test_a_damaged_newest_block_is_not_passed_over(copied: Path, bundles: list[McBundle]) -> None:
    path = copied / PACKAGES / "archive.00200.pack"
    flip_file(path, path.read_bytes().index(bundles[237].blocks[0].data) + 50)
    with closing(open_node(copied)) as source:
        assert source.last_mc_seqno() == 238
        with pytest.raises(BlockCorrupt, match="SHA-256"):
            source.read_bundle(238)


def test_a_missing_package_is_named(copied: Path) -> None:
    (copied / PACKAGES / "archive.00100.pack").unlink()
    with closing(open_node(copied)) as source:
        assert source.last_mc_seqno() == 238
        with pytest.raises(BlockCorrupt, match=r"archive.00100.pack at byte \d+: .*not exist"):
            source.read_bundle(120)


def test_a_rolled_back_node_is_noticed(tmp_path: Path, bundles: list[McBundle]) -> None:
    with closing(NodeWriter(tmp_path)) as writer:
        for bundle in bundles[:20]:
            writer.write_bundle(bundle)
        with closing(open_node(tmp_path)) as source:
            assert source.last_mc_seqno() == 20
            source.read_bundle(20)
            writer.write_shard_client(bundles[11].blocks[0].id)
            source.refresh()
            assert source.last_mc_seqno() == 12
            with pytest.raises(BlockNotYet):
                source.read_bundle(13)


def test_garbage_behind_the_valid_part_is_not_looked_at(
    copied: Path, bundles: list[McBundle]
) -> None:
    for path in (copied / PACKAGES).glob("*.pack"):
        with path.open("ab") as file:
            file.write(b"\x8b\x1e half an entry")
    with closing(open_node(copied)) as source:
        assert source.read_bundle(238) == bundles[237]


@pytest.mark.parametrize("name", ["state", "files/globalindex"])
def test_a_folder_that_is_no_node_is_refused(copied: Path, name: str) -> None:
    shutil.rmtree(copied / name)
    with pytest.raises(
        SourceError, match=f"not a database folder of a TON node: {name} not found$"
    ):
        open_node(copied)
    (copied / name).mkdir()
    remedy = f"tonlake ingest --packs {copied}/archive/packages$"
    with pytest.raises(SourceError, match=f"^{name}: no readable RocksDB: .*; .* {remedy}"):
        open_node(copied)


def test_the_folder_around_a_node_is_refused_with_a_hint(copied: Path) -> None:
    copied.rename(copied.parent / "db")
    with pytest.raises(SourceError, match="name the folder db inside it"):
        open_node(copied.parent)


def test_another_layout_is_refused(copied: Path) -> None:
    with closing(open_store(copied / "state")) as state:
        state[bytes.fromhex("54214f72")] = bytes.fromhex("f72037d903000000")
    with pytest.raises(SourceError, match="layout 3; this reader knows 2"):
        open_node(copied)


def test_a_node_without_blocks_is_empty(tmp_path: Path) -> None:
    NodeWriter(tmp_path).close()
    with closing(open_node(tmp_path)) as source:
        assert (source.first_mc_seqno(), source.last_mc_seqno()) == (1, 0)
        assert source.zero_states() == ()


def test_zero_states_come_from_either_place(copied: Path, demo_facts: Path) -> None:
    for path in (copied / "archive/states").iterdir():
        path.unlink()
    with closing(open_node(copied)) as source:
        states = source.zero_states()
    assert [state.workchain for state in states] == [-1, 0]
    assert states[0].data == (demo_facts / "zerostate.boc").read_bytes()
    assert states[0].root_hash.hex().startswith("43a63deed91f1ba2")


@pytest.mark.parametrize("place", ["archive/states", "static"])
def test_a_wrong_zero_state_is_refused_unless_the_other_place_has_it(
    copied: Path, place: str
) -> None:
    with closing(open_node(copied)) as source:
        sound = source.zero_states()
    damaged, other = copied / place, copied / ({"archive/states", "static"} - {place}).pop()
    for path in damaged.iterdir():
        path.write_bytes(next((copied / "static").iterdir()).read_bytes()[:-1])
    with closing(open_node(copied)) as source:
        assert source.zero_states() == sound
    for path in other.iterdir():
        path.unlink()
    with closing(open_node(copied)) as source, pytest.raises(SourceError, match=place):
        source.zero_states()


def test_no_private_folder_is_left(
    demo_node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source = open_node(demo_node)
    source.read_bundle(5)
    assert len(list(tmp_path.iterdir())) == 1
    source.close()
    with pytest.raises(SourceError):
        open_node(tmp_path)
    assert not list(tmp_path.iterdir())


def test_damaged_proofs_are_corrupt(copied: Path, bundles: list[McBundle]) -> None:
    """Every byte of an entry counts, the signatures too; a length of zero is an error."""
    name = f"{PACKAGES}/archive.00100.pack"
    path = copied / name
    sound = path.read_bytes()
    entry_head = entry_name(bundles[149].blocks[0].id, "proof").encode()
    start = sound.index(entry_head) + len(entry_head)
    head = start - len(entry_head) - 8
    size = int.from_bytes(sound[head + 4 : head + 8], "little")
    with closing(open_node(copied, proofs=True)) as source:
        assert source.read_bundle(150).blocks[0].proof == sound[start : start + size]
        for at in range(head, start + size, 7):
            path.write_bytes(flip(sound, at, 1 << at % 8))
            with pytest.raises(BlockCorrupt) as caught:
                source.read_bundle(150)
            assert (caught.value.file, caught.value.offset) == (name, head), at
        path.write_bytes(sound[: head + 4] + bytes(4) + sound[head + 8 :])
        with pytest.raises(BlockCorrupt, match="the proof of the block is damaged"):
            source.read_bundle(150)


def test_a_damaged_proof_of_a_shard_block_is_corrupt(copied: Path, bundles: list[McBundle]) -> None:
    shard_block = bundles[149].blocks[1].id
    name = f"{PACKAGES}/archive.00100.0:8000000000000000.pack"
    data = (copied / name).read_bytes()
    (copied / name).write_bytes(
        flip(data, data.index(entry_name(shard_block, "prooflink").encode()) + 400)
    )
    with closing(open_node(copied, proofs=True)) as source:
        with pytest.raises(BlockCorrupt, match="the proof of the block is damaged") as caught:
            source.read_unchecked(150)
        assert (caught.value.block, caught.value.file) == (shard_block, name)
    with closing(open_node(copied)) as source:
        assert source.read_bundle(150) == bundles[149]
