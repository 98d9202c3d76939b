"""Transactions, pages of their keys, and states of accounts, from segments."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any, TypeVar

from tonlake.lake.file.rows import Row
from tonlake.lake.index.index import RECORDS_AT_ONCE, Index, Segments
from tonlake.lake.index.page import Declined, Hit, bound, cut_account_page, cut_hits, order_ties
from tonlake.lake.index.segment.declared import Record
from tonlake.lake.index.segment.segment import Segment

T = TypeVar("T")


def find_newest_states(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/accounts`` of the newest block."""
    if asked["mc_seqno"] is not None:
        raise Declined
    accounts = dict.fromkeys(zip(asked["workchains"], asked["accounts"], strict=True))
    states = index.segments.newest_states(sorted(accounts))  # mostly sorted already
    return [state for state in states if state is not None]


def find_newest_codes(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/account_codes``."""
    accounts = list(zip(asked["workchains"], asked["accounts"], strict=True))
    return [
        {"workchain": workchain, "account": account, "code_hash": code_hash}
        for (workchain, account), code_hash in index.segments.newest_codes(accounts).items()
    ]


def find_newest_state(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v2/account_state`` of the newest masterchain block."""
    if asked["mc_seqno"] != index.snapshot.last_mc_seqno:
        raise Declined
    (state,) = index.segments.newest_states([(asked["workchain"], asked["account"])])
    return [] if state is None else [state]


def rank_accounts(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/accounts_by_balance``."""
    ranking = index.segments.ranking
    ranked = ranking.page(asked["offset"], asked["limit"], may_wait=index.may_read)
    return [
        {"workchain": workchain, "account": account, "balance": balance}
        for balance, workchain, account in ranked
    ]


def find_cells(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``cells``."""
    found = index.cells.find(asked["hashes"])
    return [{"hash": key, "cell": cell, "refs": refs} for key, (cell, refs) in found.items()]


Block = tuple[int, int, int]

MAX_OF_BLOCKS = 5_000
"""Most transactions of masterchain blocks read to find those of one block."""

MAX_OF_RANGE = 20_000
"""Most transactions walked for a page of a range; deeper pages are left to SQL."""

_PAGE = ("descending", "limit", "offset", "by_time")
SPANS = {"start_utime", "end_utime", "start_lt", "end_lt"}


def find_keys(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_keys_by_hash``."""
    hits = map(index.segments.find_transaction, dict.fromkeys(asked["hashes"]))
    return [hit for hit in hits if hit is not None]


def read_bags(index: Index, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Answer ``v2/bags`` of records of ``read_transactions``, which complete them."""
    segments, parts = index.current, dict[Segment, dict[int, Record]]()
    for record in asked["records"]:
        hit = segments.find_transaction(record.row["hash"])
        if hit is None:
            raise Declined
        parts.setdefault(hit.segment, {})[hit.row] = record
    return [
        {"hash": record.row["hash"], "boc": bag}
        for segment, part in parts.items()
        for record, bag in zip(
            part.values(), segment.transactions.read_bags(list(part), part.values()), strict=True
        )
    ]


def list_account_page(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_keys_of_account``."""
    lists = index.segments.list_account((asked["workchain"], asked["account"]))
    cut = (listed.cut(asked["start_lt"], asked["end_lt"]) for listed in lists)
    times = asked["start_utime"], asked["end_utime"]
    return cut_account_page([listed.cut(*times, by_time=True) for listed in cut], asked)


def list_keys(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_keys`` of a masterchain block, of a range, or of failed ones."""
    filters = {
        name
        for name, value in asked.items()
        if name not in _PAGE and value is not None and value != []
    }
    if filters == {"mc_seqno"} and not asked["by_time"]:
        hits = index.segments.list_block(asked["mc_seqno"])  # of one segment, so they are in order
        moments = ((hit.lt, hit) for hit in (reversed(hits) if asked["descending"] else hits))
        return order_ties(moments, asked["offset"] + asked["limit"])[asked["offset"] :]
    if filters <= SPANS:
        return _cut_walks(index, asked, _walk_range)
    if filters - {"start_utime", "end_utime"} != {"aborted"}:
        raise Declined
    if not asked["aborted"] or not asked["by_time"]:
        raise Declined
    return _cut_walks(index, asked, _walk_failed)


_Found = tuple[tuple[int, int], Hit]
"""A transaction with its sort key."""


def _cut_walks(index: Index, asked: Mapping[str, Any], walk: Any) -> list[Hit]:  # noqa: ANN401
    """Return a page of transactions, walked in order in each segment; ties by account."""
    descending, most = asked["descending"], asked["offset"] + asked["limit"]
    if most > MAX_OF_RANGE:
        raise Declined
    walks = [walk(segment, asked) for segment in index.segments.segments]
    found = merge(*walks, key=itemgetter(0), reverse=descending)
    return order_ties(found, most)[asked["offset"] :]


def _walk_failed(segment: Segment, asked: Mapping[str, Any]) -> Iterator[_Found]:
    """Yield the aborted transactions in a range of Unix seconds, by time and logical time."""
    times, lts = segment.transactions.now, segment.transactions.lt
    rows, (low, high) = segment.transactions.failed, bound(asked["start_utime"], asked["end_utime"])
    start = bisect_left(rows, low, key=times.__getitem__)
    places = range(start, bisect_right(rows, high, start, key=times.__getitem__))
    for at in reversed(places) if asked["descending"] else places:
        yield (times[rows[at]], lts[rows[at]]), Hit(segment, rows[at])


def _walk_range(segment: Segment, asked: Mapping[str, Any]) -> Iterator[_Found]:
    """Yield the transactions in ranges of both moments, in order, block by block.

    Blocks are nearly in order: a transaction waits until no block left can have an earlier one.
    """
    transactions, descending = segment.transactions, asked["descending"]
    times, lts = transactions.now, transactions.lt
    utimes = bound(asked["start_utime"], asked["end_utime"])
    lt_span = bound(asked["start_lt"], asked["end_lt"])
    (low, high), name = (utimes, "now") if asked["by_time"] else (lt_span, "lt")
    lasts, firsts = transactions.block_edges[name]
    blocks = range(bisect_left(lasts, low), bisect_right(firsts, high))
    ahead: list[_Found] = []
    walked = 0
    for at in reversed(blocks) if descending else blocks:
        rows = transactions.rows_of_block(at)
        walked += len(rows)
        if walked > MAX_OF_RANGE:
            raise Declined
        for row in rows:
            now, lt = times[row], lts[row]
            if utimes[0] <= now <= utimes[1] and lt_span[0] <= lt <= lt_span[1]:
                ahead.append(((now if asked["by_time"] else lt, lt), Hit(segment, row)))
        ahead.sort(key=itemgetter(0), reverse=descending)
        edge = _edge_beyond(at, firsts, lasts, descending=descending)
        count = sum(found[0] > edge if descending else found[0] < edge for found, _ in ahead)
        yield from ahead[:count]
        del ahead[:count]
    yield from ahead


def _edge_beyond(at: int, firsts: Sequence[int], lasts: Sequence[int], *, descending: bool) -> int:
    """Return the nearest moment that the blocks after one in the order of a walk may have."""
    if descending:
        return lasts[at - 1] if at else -1
    return firsts[at + 1] if at + 1 < len(firsts) else 1 << 63


def list_blocks_page(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v3/transaction_keys_of_blocks``."""
    names = ("workchains", "shards", "block_seqnos")
    blocks = set(zip(*(asked[name] for name in names), strict=True))
    hits = [hit for _, hit in _list_of_blocks(index, set(asked["mc_seqnos"]), blocks)]
    return cut_hits(hits, asked)


def list_block_page(index: Index, asked: Mapping[str, Any]) -> list[Hit]:
    """Answer ``v2/block_transactions``."""
    block = asked["workchain"], asked["shard"], asked["seqno"]
    after = asked["after_account"], asked["after_lt"]
    found = [
        (row.account, row.lt, hit)
        for row, hit in _list_of_blocks(index, {asked["mc_seqno"]}, {block})
        if after[0] is None or (row.account, row.lt) > after
    ]
    found.sort(key=itemgetter(0, 1))
    return [hit for _, _, hit in found[: asked["rows"]]]


def _list_of_blocks(
    index: Index, mc_seqnos: set[int], blocks: set[Block]
) -> Iterator[tuple[Any, Hit]]:
    """Yield the transactions of some blocks, each with its row, unordered."""
    segments = index.segments
    hits = [hit for seqno in mc_seqnos for hit in segments.list_block(seqno)]
    if len(hits) > MAX_OF_BLOCKS:
        raise Declined
    for hit, record in zip(hits, Records(segments, hits), strict=True):
        row = record.row
        if (row.workchain, row.shard, row.block_seqno) in blocks:
            yield row, hit


class Records:
    """Records that are read as they are used, some at a time: few objects live at once."""

    def __init__(self, segments: Segments, hits: Sequence[Hit]) -> None:
        self._segments, self._hits = segments, hits

    def __len__(self) -> int:
        return len(self._hits)

    def __iter__(self) -> Iterator[Record]:
        for start in range(0, len(self._hits), RECORDS_AT_ONCE):
            yield from self._segments.read_records(self._hits[start : start + RECORDS_AT_ONCE])

    def write(self, write: Callable[[list[list[Any]], memoryview], list[T]]) -> list[T]:
        """Return what a function writes of each record.

        It takes lists of ``RECORD_COLUMNS``, in which 32-byte values are numbers, and these values.
        """
        texts: list[Any] = [None] * len(self._hits)
        for segment, places, lists in self._segments.iter_lists(self._hits):
            for at, text in zip(places, write(lists, segment.rows.values), strict=True):
                texts[at] = text
        return texts


def read_transactions(index: Index, asked: Mapping[str, Any]) -> Records:
    """Answer ``v3/transactions``."""
    segments = index.current
    found = [
        segments.find_transaction(key["hash"]) if isinstance(key, dict) else key
        for key in asked["keys"]
    ]
    return Records(segments, [hit for hit in found if hit is not None])
