"""Operations about blocks."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tonlake.api.chain.header import find_masterchain_ends, list_block_keys
from tonlake.api.errors import NotCovered
from tonlake.api.request.params import Hash, Int32, Query, Shard
from tonlake.api.v3.layout.block import Block
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.page.coverage import check_mc_seqno, check_seqno
from tonlake.api.v3.page.operation import INT32_MAX, SortedPage, SpanPage, operation
from tonlake.api.v3.page.transaction_page import write_transactions
from tonlake.api.v3.resource.answer import Blocks, MasterchainInfo, ShardState
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.api.request.call import Call
    from tonlake.queries.reader import Reader

Row = dict[str, Any]

_MASTERCHAIN_SHARD = {"workchain": MASTERCHAIN, "shard": -(1 << 63)}


def render_block(row: Mapping[str, Any]) -> Block:
    """Return the header of a row of ``blocks``."""
    block: Block = make_builder(Block)(list_sources(row))
    return block


def list_sources(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the sources of a block's layout: itself, and the previous blocks that are known."""
    workchain, names = row["workchain"], ("prev", "prev2")
    previous = [
        {"workchain": workchain, "shard": row[f"{name}_shard"], "seqno": row[f"{name}_seqno"]}
        for name in names
        if row[f"{name}_seqno"] is not None
    ]
    return row, _MASTERCHAIN_SHARD | {"seqno": row["mc_seqno"]}, previous


class NoQuery(Query, frozen=True, kw_only=True):
    """No parameters."""


class BlocksQuery(SpanPage, frozen=True, kw_only=True):
    """Filters of blocks, combined by AND."""

    workchain: Int32 = None
    shard: Shard = None
    seqno: Int32 = None
    root_hash: Hash = None
    file_hash: Hash = None
    mc_seqno: Int32 = None


class ShardStateQuery(Query, frozen=True, kw_only=True):
    """A masterchain block."""

    seqno: Int32 = None


class ShardBlocksQuery(SortedPage, frozen=True, kw_only=True):
    """A masterchain block."""

    seqno: Int32 = None


def get_masterchain_info(call: Call, _query: NoQuery) -> MasterchainInfo:
    """Show the newest and the oldest masterchain block in the lake."""
    return call.reader.lasting("masterchain info", lambda: _describe_ends(call.reader))


def _describe_ends(reader: Reader) -> MasterchainInfo:
    rows = find_masterchain_ends(reader)
    if not rows:
        raise NotCovered("the lake holds no masterchain block yet")
    return MasterchainInfo(last=render_block(rows[-1]), first=render_block(rows[0]))


def get_blocks(call: Call, query: BlocksQuery) -> Blocks:
    """List blocks.

    Raises:
        NotCovered: the result is empty, and the lake does not cover the requested range.
    """
    rows = _find_blocks(call, query)
    if not rows:
        _check_covered(call, query)
    return Blocks(blocks=[render_block(row) for row in rows])


def get_shard_blocks(call: Call, query: ShardBlocksQuery) -> Blocks:
    """List the blocks committed by a masterchain block, including itself.

    They are ordered by workchain and signed shard id unless ``sort`` is set.
    """
    requested = query.seqno or 0
    first, limit = query.offset or 0, query.limit or 0
    rows = _find_blocks(call, BlocksQuery(mc_seqno=requested, limit=INT32_MAX, sort=query.sort))
    if query.sort is None:
        rows.sort(key=itemgetter("workchain", "shard", "seqno"))
    rows = rows[first : first + limit]
    if not rows:
        _check_mc_block(call, requested)
    return Blocks(blocks=[render_block(row) for row in rows])


def get_shard_state(call: Call, query: ShardStateQuery) -> ShardState:
    """List the newest block of every shard as of a masterchain block, with transactions."""
    requested = query.seqno or 0
    tops = call.reader.rows("v3/shard_tops", mc_seqno=requested)
    if not tops:
        _check_mc_block(call, requested)
    rows = [row for row in tops if row["seqno"] is not None]
    for row in tops:
        if row["seqno"] is None:
            top = f"({row['top_workchain']},{row['top_shard'] & _UINT64:016x},{row['top_seqno']})"
            call.warn(f"block {top} is not in the lake")
    keys = list_block_keys(call.reader, rows, call.settings.http.max_limit)
    if len(keys) < sum(row["tx_count"] for row in rows):
        call.warn(f"only the first {len(keys)} transactions are shown")
    page = write_transactions(call, keys)
    return ShardState(
        blocks=[render_block(row) for row in rows],
        transactions=page.transactions,
        address_book=page.address_book,
    )


_UINT64 = 0xFFFFFFFFFFFFFFFF


def _find_blocks(call: Call, query: BlocksQuery) -> list[Row]:
    return call.reader.rows(
        "v3/blocks",
        **{name: getattr(query, name) for name in _FILTERS},
        **query.filters(),
    )


_FILTERS = ("workchain", "shard", "seqno", "root_hash", "file_hash", "mc_seqno")


def _check_mc_block(call: Call, mc_seqno: int) -> None:
    """Refuse a block that is not covered, with TON Center's text and the covered range."""
    try:
        check_mc_seqno(call.reader, mc_seqno)
    except NotCovered as error:
        raise NotCovered(f"blocks not found: {error}") from error


def _check_covered(call: Call, query: BlocksQuery) -> None:
    """Refuse an empty result that missing blocks may have caused."""
    if query.mc_seqno is not None:
        check_mc_seqno(call.reader, query.mc_seqno)
    if query.seqno is not None:
        check_seqno(call.reader, query.workchain, query.shard, query.seqno)
    is_open = query.mc_seqno is None and query.seqno is None
    query.check_covered(call.reader, may_lie_in_gap=is_open)


routes = [
    operation("/masterchainInfo", NoQuery, get_masterchain_info),
    operation("/blocks", BlocksQuery, get_blocks),
    operation("/masterchainBlockShards", ShardBlocksQuery, get_shard_blocks),
    operation("/masterchainBlockShardState", ShardStateQuery, get_shard_state),
]
