"""Transactions and pages of their keys, from segments."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.answer import span
from tonlake.lake.index.declined import Declined
from tonlake.lake.index.page.hit import Hit
from tonlake.lake.index.page.merge import read_page, read_timed_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tonlake.lake.index.index import Index
    from tonlake.lake.index.page.merge import Listed

Block = tuple[int, int, int]

MAX_OF_BLOCKS = 5_000
"""Most transactions of masterchain blocks read to find those of one block."""

_PAGE = ("descending", "limit", "offset", "by_time")
SPANS = {"start_utime", "end_utime", "start_lt", "end_lt"}


def find_keys(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_keys_by_hash``."""
    hits = map(index.segments.find_transaction, dict.fromkeys(asked["hashes"]))
    return [hit for hit in hits if hit is not None]


def list_account_page(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_keys_of_account``."""
    lists = index.segments.list_account((asked["workchain"], asked["account"]))
    cut = (listed.cut(asked["start_lt"], asked["end_lt"]) for listed in lists)
    times = asked["start_utime"], asked["end_utime"]
    return _cut_page([listed.cut(*times, by_time=True) for listed in cut], asked)


def list_keys(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_keys`` of a masterchain block, of a range, or of failed ones."""
    filters = {
        name
        for name, value in asked.items()
        if name not in _PAGE and value is not None and value != []
    }
    if filters == {"mc_seqno"} and not asked["by_time"]:
        return _cut_page(index.segments.list_block(asked["mc_seqno"]), asked)
    if filters <= SPANS:
        return span.list_transactions(index, asked)
    if filters - {"start_utime", "end_utime"} != {"aborted"}:
        raise Declined
    if not asked["aborted"] or not asked["by_time"]:
        raise Declined
    failed = index.segments.list_failed(asked["start_utime"], asked["end_utime"])
    page = {name: asked[name] for name in ("descending", "offset", "limit")}
    return read_timed_page(failed, **page)


def _cut_page(lists: Sequence[Listed], asked: Mapping[str, Any]) -> list[Hit]:
    return read_page(
        lists, descending=asked["descending"], offset=asked["offset"], limit=asked["limit"]
    )


def cut_sorted(hits: Iterable[Hit], asked: Mapping[str, Any]) -> list[Hit]:
    """Return a page of hits by logical time; ties by workchain and account."""
    found = list(hits)
    if len(found) > 1:
        found.sort(key=itemgetter("workchain", "account"))
        found.sort(key=itemgetter("lt"), reverse=asked["descending"])
    return found[asked["offset"] :][: asked["limit"]]


def list_blocks_page(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_keys_of_blocks``."""
    names = ("workchains", "shards", "block_seqnos")
    blocks = set(zip(*(asked[name] for name in names), strict=True))
    found = _list_of_blocks(index, set(asked["mc_seqnos"]), blocks)
    found.sort(key=itemgetter(0, 1))
    found.sort(key=itemgetter(2), reverse=asked["descending"])
    return [item[-1] for item in found[asked["offset"] :][: asked["limit"]]]


def list_block_page(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v2/block_transactions``."""
    block = asked["workchain"], asked["shard"], asked["seqno"]
    after = asked["after_account"], asked["after_lt"]
    found = [
        (account, lt, hit)
        for _, account, lt, hit in _list_of_blocks(index, {asked["mc_seqno"]}, {block})
        if after[0] is None or (account, lt) > after
    ]
    found.sort(key=itemgetter(0, 1))
    return [hit for _, _, hit in found[: asked["rows"]]]


def _list_of_blocks(
    index: Index, mc_seqnos: set[int], blocks: set[Block]
) -> list[tuple[int, bytes, int, Hit]]:
    """Return workchain, account, logical time and hit of each transaction, unordered."""
    segments = index.segments
    lists = [listed for seqno in mc_seqnos for listed in segments.list_block(seqno)]
    if sum(listed.size for listed in lists) > MAX_OF_BLOCKS:
        raise Declined
    hits = [
        Hit(listed.segment, row)
        for listed in lists
        for row in listed.rows[listed.start : listed.end]
    ]
    rows = (record.row for record in segments.read_records(hits))
    return [
        (row.workchain, row.account, row.lt, hit)
        for hit, row in zip(hits, rows, strict=True)
        if (row.workchain, row.shard, row.block_seqno) in blocks
    ]


def read_transactions(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/transactions``."""
    segments = index.traces
    found = [
        segments.find_transaction(key["hash"]) if isinstance(key, dict) else key
        for key in asked["keys"]
    ]
    return segments.read_records([hit for hit in found if hit is not None])
