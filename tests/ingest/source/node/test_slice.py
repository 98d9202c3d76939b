"""Slices of every form: locations of blocks, and refusals."""

import hashlib
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.source.node.nodewriter import NodeWriter, encode_id, open_store, write_node
from tests.ingest.source.node.test_tl import BLOCK_IDS, HASH
from tonlake.ingest.blocks import BlockId, McBundle, name_mc_block
from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node.rocks import Scratch
from tonlake.ingest.source.node.slice import (
    HandleFlag,
    Slice,
    SliceCache,
    name_index,
    pack_handle_key,
    pack_handle_prefix,
    read_handle,
    shard_prefix,
)
from tonlake.ingest.source.node.tl import BLOCK_FILE_KEY, pack_block_id, pack_constructor


@pytest.fixture
def scratch() -> Iterator[Scratch]:
    with closing(Scratch()) as made:
        yield made


def sign(shard: int) -> int:
    return shard - (1 << 64) if shard >> 63 else shard


@given(st.integers(0, 60), st.integers(0, (1 << 60) - 1), st.integers(0, 4))
def test_prefix_is_the_ancestor_or_the_left_most_child(bits: int, path: int, depth: int) -> None:
    prefix = format(path, "060b")[:bits]
    shard = sign(int((prefix + "1").ljust(64, "0"), 2))
    expected = (prefix.ljust(depth, "0")[:depth] + "1").ljust(64, "0")
    assert shard_prefix(shard, depth) == sign(int(expected, 2))


def test_file_key_of_the_first_block_of_the_main_network() -> None:
    key = pack_constructor(BLOCK_FILE_KEY)
    key += pack_block_id(BlockId(-1, -(1 << 63), 1, ROOT, FILE))
    expected = "A1EA58C753F2FF880554EBEEE0F58C2E0D7BD05CD4D84AF5B2C08D15C4ED9E25"
    assert hashlib.sha256(key).hexdigest().upper() == expected


@pytest.mark.parametrize(
    ("slice_id", "name"),
    [
        (0, "archive/packages/arch0000/archive.00000.index"),
        (99980, "archive/packages/arch0000/archive.99980.index"),
        (100000, "archive/packages/arch0001/archive.100000.index"),
        (40123456, "archive/packages/arch0401/archive.40123456.index"),
    ],
)
def test_folders_of_indexes(slice_id: int, name: str) -> None:
    assert name_index(slice_id) == name


@pytest.mark.parametrize(
    ("form", "depth", "mark", "names"),
    [
        ("new", 0, ":", {"archive.00030.pack", "archive.00030.0:8000000000000000.pack"}),
        ("new", 0, "_", {"archive.00030.pack", "archive.00030.0_8000000000000000.pack"}),
        ("new", 1, "_", {"archive.00030.pack", "archive.00030.0_4000000000000000.pack"}),
        ("old", 0, "_", {"archive.00030.pack"}),
        ("oldest", 0, "_", {"archive.00030.pack"}),
    ],
)
def test_every_form_names_its_files(
    tmp_path: Path,
    scratch: Scratch,
    bundles: list[McBundle],
    form: str,
    depth: int,
    mark: str,
    names: set[str],
) -> None:
    write_node(tmp_path, bundles[29:60], form=form, depth=depth, mark=mark, slices=(30,))
    opened = Slice(tmp_path, 30, name_index(30), scratch)
    found = {}
    for bundle in bundles[29:60]:
        for block in bundle.blocks:
            place = opened.locate(block.id, bundle.mc_seqno)
            handle = opened.find_handle(block.id)
            assert place is not None
            assert place.path.exists()
            assert handle is not None
            assert handle.masterchain_ref == bundle.mc_seqno
            found[place.path.name] = place
    assert set(found) == names
    assert opened.last_mc_seqno() == 60
    opened.close()


def test_packages_of_a_slice_may_lie_in_the_next_folder(
    tmp_path: Path, scratch: Scratch, bundles: list[McBundle]
) -> None:
    with closing(NodeWriter(tmp_path, form="old", slices=(99980,))) as writer:
        writer.write_block(99980, 99999, bundles[0].blocks[0])
        writer.write_block(99980, 100080, bundles[1].blocks[0])
    opened = Slice(tmp_path, 99980, name_index(99980), scratch)
    for bundle, mc_seqno, name in (
        (bundles[0], 99999, "arch0000/archive.99980"),
        (bundles[1], 100080, "arch0001/archive.100080"),
    ):
        place = opened.locate(bundle.blocks[0].id, mc_seqno)
        assert place is not None
        assert place.name == f"archive/packages/{name}.pack"
    opened.close()


def test_the_older_separator_is_preferred_where_both_files_are(
    tmp_path: Path, scratch: Scratch, bundles: list[McBundle]
) -> None:
    committing = next(bundle for bundle in bundles if len(bundle.blocks) > 1)
    write_node(tmp_path, [committing], mark="_")
    (path,) = tmp_path.rglob("*_8000000000000000.pack")
    opened = Slice(tmp_path, 0, name_index(0), scratch)
    block, mc_seqno = committing.blocks[1].id, committing.mc_seqno
    assert opened.locate(block, mc_seqno).path == path  # type: ignore[union-attr]
    older = path.with_name(path.name.replace("_", ":"))
    older.write_bytes(path.read_bytes())
    opened.catch_up()
    assert opened.locate(block, mc_seqno).path == older  # type: ignore[union-attr]
    opened.close()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({}, "no status"),
        ({b"status": b"sliced"}, "sliced, but without a slice size"),
        ({b"status": b"sliced", b"slice_size": b"many"}, "slice_size is b'many', no number"),
        (
            {
                b"status": b"sliced",
                b"slice_size": b"100",
                b"slices": b"1",
                b"shard_split_depth": b"0",
                b"info.0": b"nothing",
            },
            "info.0 is 'nothing', no package",
        ),
    ],
)
def test_an_index_that_makes_no_sense_is_refused(
    tmp_path: Path, scratch: Scratch, rows: dict[bytes, bytes], words: str
) -> None:
    store = open_store(tmp_path / name_index(0))
    for key, value in rows.items():
        store[key] = value
    store.close()
    with pytest.raises(SourceError, match=f"archive.00000.index: {words}"):
        Slice(tmp_path, 0, name_index(0), scratch)


def test_an_offset_without_a_package_is_refused(
    tmp_path: Path, scratch: Scratch, bundles: list[McBundle]
) -> None:
    write_node(tmp_path, bundles[:1])
    opened = Slice(tmp_path, 0, name_index(0), scratch)
    with pytest.raises(SourceError, match="lists no package 500"):
        opened.locate(bundles[0].blocks[0].id, 512)
    assert opened.locate(BlockId(0, 1, 1, bytes(32), bytes(32)), 1) is None
    opened.close()


def test_open_slices_are_bounded(tmp_path: Path, scratch: Scratch, bundles: list[McBundle]) -> None:
    write_node(tmp_path, bundles[:5], slices=(1, 2, 3, 4, 5))
    cache = SliceCache(tmp_path, scratch, 2)
    opened = {number: cache.open(number) for number in (1, 2)}
    assert cache.open(1) is opened[1]
    cache.open(3)
    assert cache.open(1) is opened[1]
    assert cache.open(2) is not opened[2]
    assert len(list(scratch.folder.glob("tmp*"))) == 2
    cache.close()
    assert not list(scratch.folder.glob("tmp*"))


def test_a_slice_that_does_not_open_is_opened_again_after_a_refresh(
    tmp_path: Path, scratch: Scratch, bundles: list[McBundle]
) -> None:
    write_node(tmp_path, bundles[:1])
    index = tmp_path / name_index(0)
    index.rename(index.with_suffix(".moved"))
    with closing(SliceCache(tmp_path, scratch, 2)) as cache:
        with pytest.raises(SourceError) as failed:
            cache.open(0)
        index.with_suffix(".moved").rename(index)
        with pytest.raises(SourceError) as again:
            cache.open(0)
        assert again.value is failed.value
        cache.refresh()
        assert cache.open(0).id == 0


HANDLE = bytes.fromhex("27e7c64a")
ROOT = bytes.fromhex("f0662186b8a077c0b0646ad14f9f62ba52c372089362ebce033149c6e81cd13b")
FILE = bytes.fromhex("57e5f3ca4130ba7e3278f6610043d993bed16cc7cc3a04bf4b81a226448a63ab")


@given(
    BLOCK_IDS,
    st.lists(BLOCK_IDS, min_size=4, max_size=4),
    HASH,
    st.integers(0, (1 << 30) - 1),
    st.integers(0, (1 << 62)),
    st.integers(0, (1 << 32) - 1),
)
def test_fields_follow_their_bits(
    block_id: BlockId, links: list[BlockId], state: bytes, flags: int, lt: int, number: int
) -> None:
    fields = [
        *((bit + 1, encode_id(link)) for bit, link in enumerate(links)),
        (13, struct.pack("<q", lt)),
        (14, struct.pack("<I", number)),
        (17, state),
        (23, struct.pack("<I", number)),
    ]
    value = HANDLE + encode_id(block_id) + struct.pack("<I", flags)
    value += b"".join(field for bit, field in fields if flags >> bit & 1)
    handle = read_handle(value, "a handle")
    assert (handle.id, handle.flags) == (block_id, flags)
    assert handle.prev == tuple(links[bit - 1] for bit in (1, 2) if flags >> bit & 1)
    assert handle.unixtime == (number if flags >> 14 & 1 else None)
    committed_by = number if flags >> 23 & 1 else None
    assert handle.masterchain_ref == (block_id.seqno if block_id.workchain == -1 else committed_by)
    for damaged, reason in ((value + b"\x00", "left over"), (value[:-1], "too early")):
        with pytest.raises(SourceError, match=reason):
            read_handle(damaged, "a handle")


def test_flags_stand_at_the_bits_of_the_node() -> None:
    expected = {
        "PREV_LEFT": 0x2,
        "PREV_RIGHT": 0x4,
        "NEXT_LEFT": 0x8,
        "NEXT_RIGHT": 0x10,
        "LT_KNOWN": 0x2000,
        "TIME_KNOWN": 0x4000,
        "STATE_HASH_KNOWN": 0x20000,
        "ARCHIVED": 0x200000,
        "MASTERCHAIN_REF_KNOWN": 0x800000,
    }
    assert {name: HandleFlag[name].value for name in expected} == expected


def test_key_of_the_first_block_of_the_main_network() -> None:
    block_id = BlockId(-1, -(1 << 63), 1, ROOT, FILE)
    expected = "73d1577fffffffff000000000000008001000000"
    assert pack_handle_prefix(-1, -(1 << 63), 1).hex() == expected
    assert pack_handle_key(block_id).hex() == expected + ROOT.hex() + FILE.hex()


def test_an_unknown_masterchain_block_is_named_by_its_seqno() -> None:
    assert str(name_mc_block(17)) == "(-1,8000000000000000,17)"
