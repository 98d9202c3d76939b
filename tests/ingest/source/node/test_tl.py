"""TL values: constructor ids follow from the scheme, readers refuse truncated or wrong data."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.source.node.nodewriter import FALSE, TRUE, encode_id
from tonlake.ingest.blocks import BlockId
from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node import tl

UINT32 = st.integers(0, (1 << 32) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
HASH = st.binary(min_size=32, max_size=32)
BLOCK_IDS = st.builds(
    BlockId,
    st.integers(-(1 << 31), (1 << 31) - 1),
    INT64,
    st.integers(0, (1 << 31) - 1),
    HASH,
    HASH,
)

SCHEME = {
    tl.BLOCK_HANDLE_KEY: "db.blockdb.key.value id:tonNode.blockIdExt = db.blockdb.Key",
    tl.INDEX_KEY: "db.files.index.key = db.files.Key",
    tl.INDEX_VALUE: "db.files.index.value packages:vector int key_packages:vector int"
    " temp_packages:vector int = db.files.index.Value",
    tl.PACKAGE_KEY: "db.files.package.key package_id:int key:Bool temp:Bool = db.files.Key",
    tl.PACKAGE_VALUE: "db.files.package.value package_id:int key:Bool temp:Bool firstblocks:vector"
    " db.files.package.firstBlock deleted:Bool = db.files.package.Value",
    tl.LT_DESC_KEY: "db.lt.desc.key workchain:int shard:long = db.lt.Key",
    tl.LT_DESC_VALUE: "db.lt.desc.value first_idx:int last_idx:int last_seqno:int last_lt:long"
    " last_ts:int = db.lt.desc.Value",
    tl.BLOCK_FILE_KEY: "db.filedb.key.blockFile block_id:tonNode.blockIdExt = db.filedb.Key",
    tl.ZERO_STATE_FILE_KEY: "db.filedb.key.zeroStateFile block_id:tonNode.blockIdExt ="
    " db.filedb.Key",
    tl.CELLDB_VALUE: "db.celldb.value block_id:tonNode.blockIdExt prev:int256 next:int256"
    " root_hash:int256 = db.celldb.Value",
    tl.DB_VERSION: "db.state.dbVersion version:int = db.state.DbVersion",
    tl.DB_VERSION_KEY: "db.state.key.dbVersion = db.state.Key",
    tl.INIT_BLOCK_ID: "db.state.initBlockId block:tonNode.blockIdExt = db.state.InitBlockId",
    tl.SHARD_CLIENT: "db.state.shardClient block:tonNode.blockIdExt = db.state.ShardClient",
}
"""Lines of ton_api.tl, without the parentheses of vectors."""


@pytest.mark.parametrize("constructor", SCHEME)
def test_constructors_are_the_crc_of_their_lines(constructor: int) -> None:
    assert zlib.crc32(SCHEME[constructor].encode()) == constructor


@given(BLOCK_IDS)
def test_block_ids_come_back(block_id: BlockId) -> None:
    packed = tl.pack_block_id(block_id)
    assert packed == encode_id(block_id)
    reader = tl.TlReader(packed, "an id")
    assert reader.read_block_id() == block_id
    reader.expect_end()


@given(UINT32, st.booleans(), st.lists(UINT32, max_size=5))
def test_values_come_back(number: int, truth: bool, items: list[int]) -> None:  # noqa: FBT001
    data = struct.pack("<IiI", 0xE6101440, number - (1 << 31), number)
    data += TRUE if truth else FALSE
    data += struct.pack(f"<I{len(items)}I", len(items), *items)
    reader = tl.TlReader(data, "values")
    reader.read_constructor(tl.CELLDB_VALUE)
    assert reader.read_int() == number - (1 << 31)
    assert reader.read_uint() == number
    assert reader.read_bool() is truth
    assert reader.read_vector(reader.read_uint) == items
    reader.expect_end()


@given(BLOCK_IDS, st.data())
def test_a_cut_value_names_itself_and_the_byte(block_id: BlockId, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, tl.BLOCK_ID_BYTES - 1))
    reader = tl.TlReader(tl.pack_block_id(block_id)[:size], "state: shardClient")
    with pytest.raises(SourceError, match=f"state: shardClient: .* at byte 0 of {size}"):
        reader.read_block_id()


@pytest.mark.parametrize(
    ("data", "method", "words"),
    [
        (b"\x00\x00\x00\x01", "read_bool", "no Bool at byte 0"),
        (b"\xff\xff\xff\xff", "read_vector", "a vector of 4294967295 items at byte 0"),
        (b"left", "expect_end", "left over"),
    ],
)
def test_wrong_values_are_refused(data: bytes, method: str, words: str) -> None:
    reader = tl.TlReader(data, "x")
    arguments = (reader.read_int,) if method == "read_vector" else ()
    with pytest.raises(SourceError, match=words):
        getattr(reader, method)(*arguments)


def test_another_constructor_is_refused() -> None:
    with pytest.raises(
        SourceError, match="constructor e6101440 expected, found 00000001 at byte 0"
    ):
        tl.TlReader(b"\x01\x00\x00\x00", "x").read_constructor(tl.CELLDB_VALUE)
