"""Values of TL: readers refuse truncated or wrong data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.ingest.blocks import BlockId
from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node import tl

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
        tl.TlReader(b"\x01\x00\x00\x00", "x", tl.CELLDB_VALUE)
