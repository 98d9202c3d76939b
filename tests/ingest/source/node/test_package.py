"""Packages: entries by offset and by scan, cut at every byte, flipped at many bits."""

import hashlib
import random
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.damage import flip_bit
from tests.ingest.source.node.nodewriter import encode_entry, entry_name
from tests.ingest.source.node.test_tl import BLOCK_IDS
from tonlake.ingest.blocks import BlockId
from tonlake.ingest.errors import EntryFlaw
from tonlake.ingest.source.node.package import (
    EntryPlace,
    OpenFiles,
    PackageScan,
    format_entry_name,
    parse_entry_name,
    read_block_entry,
)

MAGIC = bytes.fromhex("01dd8fae")


def make_block(seqno: int, size: int = 60) -> tuple[BlockId, bytes]:
    """Return a block of arbitrary bytes with the right file hash."""
    data = random.Random(seqno).randbytes(size)  # noqa: S311 - not for secrets
    return BlockId(0, -(1 << 63), seqno, bytes(32), hashlib.sha256(data).digest()), data


def entry(block_id: BlockId, data: bytes) -> bytes:
    return encode_entry(entry_name(block_id), data)


@given(BLOCK_IDS)
def test_names_come_back(block_id: BlockId) -> None:
    name = format_entry_name(block_id)
    assert name == entry_name(block_id)
    assert parse_entry_name(name.encode()) == ("block", block_id)
    assert parse_entry_name(name.replace("block", "prooflink").encode()) == ("prooflink", block_id)


@given(st.binary(max_size=200))
def test_other_names_are_none(name: bytes) -> None:
    assert parse_entry_name(name) is None


@settings(max_examples=30)
@given(st.lists(st.tuples(st.binary(max_size=300), st.booleans()), max_size=8))
def test_blocks_are_found_at_their_offsets(
    tmp_path_factory: pytest.TempPathFactory, contents: list[tuple[bytes, bool]]
) -> None:
    path = tmp_path_factory.mktemp("pack") / "archive.00000.pack"
    packed, places = MAGIC, {}
    for seqno, (data, is_block) in enumerate(contents):
        block_id = BlockId(0, -(1 << 63), seqno, bytes(32), hashlib.sha256(data).digest())
        if is_block:
            places[block_id] = (len(packed) - 4, data)
        packed += encode_entry(entry_name(block_id, "block" if is_block else "proof"), data)
    path.write_bytes(packed)
    scan = PackageScan(path, path.name)
    scan.advance()
    assert (scan.tail, scan.flaws) == (None, [])
    assert scan.end == len(packed) - 4
    assert {one: place.offset for one, place in scan.blocks.items()} == {
        one: offset for one, (offset, _data) in places.items()
    }
    for block_id, (offset, data) in places.items():
        place = EntryPlace(path, path.name, offset, len(packed) - 4)
        assert read_block_entry(place, block_id) == data


def test_a_tail_cut_at_any_byte_is_not_yet_and_goes_on_where_it_ended(tmp_path: Path) -> None:
    blocks = [make_block(seqno) for seqno in range(1, 6)]
    entries = [entry(*block) for block in blocks]
    whole = MAGIC + b"".join(entries)
    starts = [len(MAGIC) + sum(map(len, entries[:count])) for count in range(len(entries) + 1)]
    path = tmp_path / "p.pack"
    for size in range(starts[3], len(whole) + 1):
        path.write_bytes(whole[:size])
        scan = PackageScan(path, "p.pack")
        scan.advance()
        complete = sum(start <= size for start in starts[1:])
        assert list(scan.blocks) == [block_id for block_id, _data in blocks[:complete]]
        assert scan.end + 4 == starts[complete]
        if size == starts[complete]:
            assert scan.tail is None
        else:
            assert scan.tail is not None
            assert (scan.tail.cut, scan.tail.offset) == (True, starts[complete])
        with path.open("ab") as file:
            file.write(whole[size:])
        before = dict(scan.blocks)
        assert scan.advance() == (size < len(whole))
        assert scan.tail is None
        assert list(scan.blocks) == [block_id for block_id, _data in blocks]
        assert all(scan.blocks[one] is place for one, place in before.items())


def test_a_file_cut_by_the_node_is_read_again(tmp_path: Path) -> None:
    first, second, other = make_block(1), make_block(2), make_block(2, size=61)
    path = tmp_path / "p.pack"
    path.write_bytes(MAGIC + entry(*first) + entry(*second))
    scan = PackageScan(path, "p.pack")
    scan.advance()
    assert list(scan.blocks) == [first[0], second[0]]
    path.write_bytes(MAGIC + entry(*first))
    assert scan.advance()
    assert list(scan.blocks) == [first[0]]
    path.write_bytes(MAGIC + entry(*first) + entry(*other))
    scan.advance()
    assert list(scan.blocks) == [first[0], other[0]]
    path.unlink()
    scan.advance()
    assert not scan.blocks
    assert "does not exist" in str(scan.tail)


def test_a_copy_with_right_bytes_wins_over_one_with_wrong_bytes(tmp_path: Path) -> None:
    block_id, data = make_block(1)
    wrong = encode_entry(entry_name(block_id), data[:-1] + bytes([data[-1] ^ 1]))
    path = tmp_path / "p.pack"
    path.write_bytes(MAGIC + wrong + entry(block_id, data) + entry(block_id, data))
    scan = PackageScan(path, "p.pack")
    scan.advance()
    assert len(scan.blocks) == len(scan.flaws) == 1
    assert read_block_entry(scan.blocks[block_id], block_id) == data


def test_flipped_bits_of_an_entry_are_found_by_offset(tmp_path: Path) -> None:
    blocks = [make_block(seqno) for seqno in range(1, 4)]
    entries = [entry(*block) for block in blocks]
    whole = MAGIC + b"".join(entries)
    path = tmp_path / "p.pack"
    start = len(MAGIC) + len(entries[0])
    place = EntryPlace(path, "p.pack", start - 4, len(whole) - 4)
    bits = range(start * 8, (start + len(entries[1])) * 8)
    for bit in random.Random(2).sample(bits, 1000):  # noqa: S311
        path.write_bytes(flip_bit(whole, bit))
        with pytest.raises(EntryFlaw) as caught:
            read_block_entry(place, blocks[1][0])
        assert (caught.value.file, caught.value.offset) == ("p.pack", start)
        assert not caught.value.cut


def test_flipped_bits_are_found_by_scanning(tmp_path: Path) -> None:
    blocks = [make_block(seqno) for seqno in range(1, 4)]
    expected = {block_id for block_id, _data in blocks}
    whole = MAGIC + b"".join(entry(*block) for block in blocks)
    path = tmp_path / "p.pack"
    for bit in random.Random(1).sample(range(len(whole) * 8), 1200):  # noqa: S311
        path.write_bytes(flip_bit(whole, bit))
        scan = PackageScan(path, "p.pack")
        scan.advance()
        right = {
            one for one, place in scan.blocks.items() if one in expected and _is_right(place, one)
        }
        # A digit of the root hash in a name is checked against the cells, not here.
        assert right != expected or scan.flaws or scan.tail
        damaged = scan.flaws or scan.tail or set(scan.blocks) - expected
        assert damaged
        last = len(whole) - len(entry(*blocks[-1]))
        if scan.tail is not None and scan.tail.cut:
            assert bit // 8 >= last, "a wrong length in front of other entries is no cut tail"


def _is_right(place: EntryPlace, block_id: BlockId) -> bool:
    with suppress(EntryFlaw):
        return bool(read_block_entry(place, block_id))
    return False


def test_the_index_bounds_what_is_read(tmp_path: Path) -> None:
    block_id, data = make_block(1)
    path = tmp_path / "p.pack"
    path.write_bytes(MAGIC + entry(block_id, data))
    size = path.stat().st_size - 4
    assert read_block_entry(EntryPlace(path, "p.pack", 0, size), block_id) == data
    with pytest.raises(EntryFlaw, match=r"the index declares only .* bytes valid"):
        read_block_entry(EntryPlace(path, "p.pack", 0, size - 1), block_id)
    with closing(OpenFiles()) as files:
        for _ in range(2):  # the second time from the file that is still open
            assert read_block_entry(EntryPlace(path, "p.pack", 0, size, files), block_id) == data
            path.unlink(missing_ok=True)


def test_a_missing_file_and_a_file_that_is_no_package(tmp_path: Path) -> None:
    block_id, _data = make_block(1)
    with pytest.raises(EntryFlaw, match=r"x\.pack at byte 4: the file does not exist"):
        read_block_entry(EntryPlace(tmp_path / "x.pack", "x.pack", 0, 9), block_id)
    (tmp_path / "y.pack").write_bytes(b"not a package at all")
    scan = PackageScan(tmp_path / "y.pack", "y.pack")
    scan.advance()
    assert "not a package" in str(scan.tail)
