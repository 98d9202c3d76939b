"""Blocks by place are those that the named queries give, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from queries import headers
from queries.exact import Slice
from queries.headers import (
    find_block,
    find_block_transactions,
    find_blocks,
    find_masterchain_ends,
    list_block_transactions,
    list_shards,
    list_tops,
)
from tests.queries.watching import watch

if TYPE_CHECKING:
    from queries.reader import Reader
    from tests.queries.watching import Watching

Row = dict[str, Any]
PAGES = (Slice(10), Slice(3, 2), Slice(3, 2, descending=False), Slice(500, 200, descending=False))


@pytest.fixture
def watched(reader: Reader) -> Watching:
    """The demo lake; what is asked for was asked for before."""
    watching = watch(reader)
    for _ in range(2):
        list_tops(watching, 1)
    watching.asked.clear()
    return watching


def test_pages_of_blocks(watched: Watching, reader: Reader) -> None:
    shards = reader.rows("v3/blocks", workchain=0, limit=1000)
    asked: list[Row] = [
        {"workchain": -1},
        {"mc_seqno": shards[0]["mc_seqno"]},
        {"mc_seqno": 10**9},
        {"workchain": 0, "seqno": shards[5]["seqno"]},
        {"workchain": 0, "shard": shards[7]["shard"], "seqno": shards[7]["seqno"]},
        {"mc_seqno": 7, "root_hash": bytes(32)},
    ]
    for filters in asked:
        for page in PAGES:
            wanted = reader.rows("v3/blocks", **filters, **page._asdict())
            assert find_blocks(watched, filters, page) == wanted, (filters, page)
    assert watched.asked == []


def test_other_filters_are_left_to_the_query(watched: Watching, reader: Reader) -> None:
    for filters in ({}, {"workchain": 0}, {"seqno": 5}, {"workchain": -1, "start_utime": 1}):
        wanted = reader.rows("v3/blocks", **filters, **PAGES[0]._asdict())
        assert find_blocks(watched, filters, PAGES[0]) == wanted
    find_blocks(watched, {"workchain": -1}, Slice(10, 10**6))
    assert watched.asked == ["v3/blocks"] * 5


def test_a_block_of_a_line_of_shards(watched: Watching, reader: Reader) -> None:
    for block in reader.rows("v3/blocks", limit=1000)[::7]:
        where = {"workchain": block["workchain"], "seqno": block["seqno"]}
        wanted = reader.rows("v3/blocks", **where, limit=1000)
        for shards in ([block["shard"]], [1 << 62, block["shard"]], [block["shard"], 1 << 61], []):
            fitting = [row for shard in shards for row in wanted if row["shard"] == shard]
            assert find_block(watched, shards=shards, **where) == (fitting or [None])[-1]
    assert watched.asked == []


def test_masterchain_blocks_at_both_ends(watched: Watching, reader: Reader) -> None:
    last = reader.snapshot.last_mc_seqno
    wanted = reader.rows("v3/blocks", workchain=-1, descending=False, limit=1000)
    found = find_masterchain_ends(watched)
    assert found == [wanted[0], wanted[last - 1]]
    assert find_masterchain_ends(watched) is found
    assert watched.asked == []


def test_shards_of_a_masterchain_block(watched: Watching, reader: Reader) -> None:
    last = reader.snapshot.last_mc_seqno
    for mc_seqno in (*range(1, last, 17), last, last + 1):
        wanted = reader.rows("v2/shards", mc_seqno=mc_seqno)
        found = list_shards(watched, mc_seqno)
        assert [{name: row[name] for name in wanted[0]} for row in found] == wanted
        tops = reader.rows("v3/shard_tops", mc_seqno=mc_seqno)
        shown = list_tops(watched, mc_seqno)
        assert [{name: row[name] for name in tops[0]} for row in shown] == tops
    assert watched.asked == []


def test_transactions_of_blocks(
    watched: Watching, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    for mc_seqno in range(1, reader.snapshot.last_mc_seqno, 13):
        blocks = reader.rows("v3/blocks", mc_seqno=mc_seqno, limit=1000)
        for some in (blocks, blocks[:1], blocks[1:]):
            wanted = reader.rows(
                "v3/transaction_keys_of_blocks",
                mc_seqnos=[block["mc_seqno"] for block in some],
                workchains=[block["workchain"] for block in some],
                shards=[block["shard"] for block in some],
                block_seqnos=[block["seqno"] for block in some],
                limit=1000,
            )
            found = find_block_transactions(watched, some, Slice(1000, descending=False))
            assert found is not None
            assert [key["hash"] for key in found] == [key["hash"] for key in wanted]
            latest = find_block_transactions(watched, some, Slice(5, 1))
            lts = sorted((key["lt"] for key in wanted), reverse=True)
            assert [key["lt"] for key in latest or ()] == lts[1:6]
    assert find_block_transactions(reader, blocks, Slice(10)) is None
    monkeypatch.setattr(headers, "MOST_OF_BLOCKS", 0)
    assert find_block_transactions(watched, blocks, Slice(10)) is None


def test_transactions_of_a_block_after_one(watched: Watching, reader: Reader) -> None:
    blocks = reader.rows("v3/blocks", limit=1000)
    largest = sorted(blocks, key=lambda block: block["tx_count"], reverse=True)[:2]
    for block in (*largest, *blocks[::60]):
        everything = list_block_transactions(reader, block, None, 1000)
        assert len(everything) == block["tx_count"]
        afters = [(row["account"], row["lt"] - less) for row in everything for less in (0, 1)]
        for after, most in ((None, 1000), (None, 2), *((after, 3) for after in afters)):
            wanted = list_block_transactions(reader, block, after, most)
            found = list_block_transactions(watched, block, after, most)
            shown = [{name: row[name] for name in row if name != "hit"} for row in found]
            assert shown == wanted, (block["seqno"], after)
    assert watched.asked == []
