"""Block headers by id, pages of them, and shards, from decoded row groups."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.index.answer import span
from tonlake.lake.index.declined import Declined
from tonlake.lake.index.rowgroup.cache import MAX_ROWS
from tonlake.lake.index.rowgroup.predicate import AnyOf
from tonlake.lake.schema.block import BLOCKS, SHARD_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.lake.index.index import Index
    from tonlake.lake.index.rowgroup.predicate import Bounds

Row = dict[str, Any]


_COLUMNS = tuple(name for name in BLOCKS.names if name != "time")
_PLACE = ("workchain", "shard", "seqno")
_HASHES = frozenset({"root_hash", "file_hash"})
_EXACT = frozenset({*_PLACE, *_HASHES, "mc_seqno"})
_PAGE = frozenset({"descending", "limit", "offset"})
_OF_SPAN = frozenset({"workchain", "shard", "start_utime", "end_utime", "start_lt", "end_lt"})


def list_blocks(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/blocks`` by id, and pages of the masterchain and of ranges."""
    filters = {
        name: value for name, value in asked.items() if name not in _PAGE and value is not None
    }
    if filters == {"workchain": MASTERCHAIN}:
        found = _gather_masters(index, asked)
    elif filters.keys() <= _EXACT and _HASHES & filters.keys():
        found = _find_by_hash(index, filters)
    elif filters.keys() <= _EXACT and (
        "mc_seqno" in filters or {"workchain", "seqno"} <= filters.keys()
    ):
        bounds: dict[str, Bounds] = {name: (value, value) for name, value in filters.items()}
        if filters.get("workchain") == MASTERCHAIN and "seqno" in filters:
            bounds["mc_seqno"] = bounds["seqno"]  # a masterchain block commits itself
        found = index.gather(BLOCKS.name, _COLUMNS, bounds)
    elif filters.keys() <= _OF_SPAN:
        exact = {name: value for name, value in filters.items() if name in _EXACT}
        found = span.list_blocks(index, asked, exact)
    else:
        raise Declined
    found.sort(key=itemgetter("workchain", "shard"))
    found.sort(key=itemgetter("gen_utime", "start_lt"), reverse=asked["descending"])
    return found[asked["offset"] :][: asked["limit"]]


def _find_by_hash(index: Index, filters: Mapping[str, Any]) -> list[Row]:
    """Return blocks by root or file hash, and any other columns."""
    name = next(name for name in filters if name in _HASHES)
    seqnos = index.segments.find_seqnos(f"{BLOCKS.name}.{name}", filters[name])
    bounds: dict[str, Bounds] = {name: (value, value) for name, value in filters.items()}
    if not seqnos:
        return []
    if "mc_seqno" not in filters:
        bounds["mc_seqno"] = AnyOf(tuple(seqnos))
    return index.gather(BLOCKS.name, _COLUMNS, bounds)


def _gather_masters(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Return the masterchain blocks up to the end of a page, which are in order of seqno."""
    most = asked["offset"] + asked["limit"]
    if most > MAX_ROWS:
        raise Declined
    seqnos: list[int] = []
    ranges = index.snapshot.ranges
    for first, last in reversed(ranges) if asked["descending"] else ranges:
        left = most - len(seqnos)
        if asked["descending"]:
            seqnos += range(last, max(first - 1, last - left), -1)
        else:
            seqnos += range(first, min(last + 1, first + left))
    if not seqnos:
        raise Declined
    bounds = {
        "mc_seqno": (min(seqnos), max(seqnos)),
        "workchain": (MASTERCHAIN, MASTERCHAIN),
    }
    found = index.gather(BLOCKS.name, _COLUMNS, bounds)
    if len(found) != len(seqnos):
        raise Declined
    return found


def list_shards(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v2/shards``."""
    bounds = {"mc_seqno": (asked["mc_seqno"], asked["mc_seqno"])}
    found = index.gather(SHARD_BLOCKS.name, SHARD_BLOCKS.names, bounds)
    found = [row for row in found if row["workchain"] != MASTERCHAIN]
    found.sort(
        key=lambda row: (row["workchain"] < 0, row["workchain"], row["shard"] < 0, row["shard"])
    )
    return found


def list_shard_tops(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/shard_tops``."""
    bounds = {"mc_seqno": (asked["mc_seqno"], asked["mc_seqno"])}
    tops = index.gather(SHARD_BLOCKS.name, _PLACE, bounds)
    nothing = dict.fromkeys(_COLUMNS)
    rows = []
    for top in sorted(tops, key=itemgetter(*_PLACE)):
        place = {name: (value, value) for name, value in top.items()}
        named = {f"top_{name}": value for name, value in top.items()}
        rows += [named | row for row in index.gather(BLOCKS.name, _COLUMNS, place) or [nothing]]
    return rows
