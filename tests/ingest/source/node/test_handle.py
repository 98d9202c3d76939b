"""Block handles: every field has its own presence bit."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.source.node.nodewriter import encode_id
from tests.ingest.source.node.test_tl import BLOCK_IDS, HASH
from tonlake.ingest.blocks import BlockId, name_mc_block
from tonlake.ingest.errors import SourceError
from tonlake.ingest.source.node.slice import (
    HandleFlag,
    pack_handle_key,
    pack_handle_prefix,
    read_handle,
)

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
    assert handle.id == block_id
    assert int(handle.flags) == flags
    assert handle.prev == tuple(links[bit - 1] for bit in (1, 2) if flags >> bit & 1)
    assert handle.unixtime == (number if flags >> 14 & 1 else None)
    committed_by = number if flags >> 23 & 1 else None
    assert handle.masterchain_ref == (block_id.seqno if block_id.workchain == -1 else committed_by)
    with pytest.raises(SourceError, match="left over"):
        read_handle(value + b"\x00", "a handle")
    with pytest.raises(SourceError, match="too early"):
        read_handle(value[:-1], "a handle")


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
