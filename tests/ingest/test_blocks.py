"""Printed forms of block ids."""

from tonlake.ingest.blocks import BlockId


def test_ids_print_as_in_the_files_of_a_node() -> None:
    hashes = bytes(32), bytes(32)
    assert str(BlockId(-1, -(1 << 63), 17, *hashes)) == "(-1,8000000000000000,17)"
    assert str(BlockId(0, 0x6000000000000000, 0, *hashes)) == "(0,6000000000000000,0)"
    assert str(BlockId(0, -0x2000000000000000, 5, *hashes)) == "(0,e000000000000000,5)"


def test_ids_sort_by_workchain_shard_seqno() -> None:
    hashes = bytes(32), bytes(32)
    ids = [BlockId(0, 5, 9, *hashes), BlockId(0, -5, 10, *hashes), BlockId(-1, 7, 11, *hashes)]
    assert sorted(ids) == [ids[2], ids[1], ids[0]]
