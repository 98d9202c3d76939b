"""Notations of shards, block ids and addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.account import read_block_id, read_friendly_address, read_raw_address, read_shard

SHARDS = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.integers(-(1 << 31), (1 << 31) - 1), SHARDS, st.integers(0, (1 << 31) - 1))
def test_block_id_in_every_form(workchain: int, shard: int, seqno: int) -> None:
    unsigned = shard % (1 << 64)
    forms = (
        f"({workchain},{unsigned:016x},{seqno})",
        f"{workchain}:{unsigned:016X}:{seqno}",
        f"({workchain}, 0x{unsigned:016x}, {seqno})",
        f"({workchain},{unsigned:016x},{seqno}):{'0A' * 32}:{'b1' * 32}",
    )
    assert {read_block_id(form) for form in forms} == {(workchain, shard, seqno)}


@given(SHARDS.map(lambda shard: shard if abs(shard) > 1 << 56 else shard ^ 1 << 62))
def test_shard_as_a_decimal(shard: int) -> None:
    assert read_shard(str(shard)) == shard
    assert read_shard(str(shard % (1 << 64))) == shard
    assert read_block_id(f"(0,{shard},7)") == (0, shard, 7)


@pytest.mark.parametrize(
    "text", ["", "(0,xyz,1)", "0:8000000000000000", "(0,0xx8,1)", "1:2:3:4", "12:30:45"]
)
def test_other_text_is_no_block_id(text: str) -> None:
    assert read_block_id(text) is None


def test_addresses_of_other_forms() -> None:
    assert read_raw_address("EQ" + "A" * 46) is None
    with pytest.raises(ValueError, match="32 bits"):
        read_raw_address(f"2147483648:{'f' * 64}")
    with pytest.raises(ValueError, match="checksum"):
        read_friendly_address("E" * 48)
    with pytest.raises(ValueError, match="tag 0x31 is unknown"):
        read_friendly_address("MQDO7LLFdHmVHNZNq8uk6fCw4JPlDLfOs0ZIPki5h0p992_D")
