"""Block headers by id, pages of them, and shards, from segments."""

from collections.abc import Mapping
from functools import partial
from operator import itemgetter
from typing import Any

from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.index.index import Index
from tonlake.lake.index.page import (
    Place,
    bound,
    cut_walk,
    group_places,
    is_within,
    merge_walks,
    read_rows,
    walk,
)
from tonlake.lake.index.segment.declared import BLOCKS, SHARD_BLOCKS
from tonlake.lake.index.segment.segment import SegmentTable

_PLACE = ("workchain", "shard", "seqno")
_EXACT = ("root_hash", "file_hash", "mc_seqno", *_PLACE)
_SPANS = {"gen_utime": ("start_utime", "end_utime"), "start_lt": ("start_lt", "end_lt")}


def list_blocks(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/blocks``."""
    exact = {name: asked[name] for name in _EXACT if asked[name] is not None}
    keys = [name for name in ("root_hash", "file_hash", "mc_seqno", "seqno") if name in exact]
    tables, descending = index.segments.tables(BLOCKS.name), asked["descending"]
    if keys:
        rows = index.segments.read(BLOCKS.name, keys[0], exact[keys[0]])
        found = _choose(rows, exact, asked)
        _sort_blocks(found, descending=descending)
        return found[asked["offset"] :][: asked["limit"]]
    span = bound(asked["start_utime"], asked["end_utime"])
    walks = [(table, walk(table, "gen_utime", span, descending=descending)) for table in tables]
    is_bound = asked["start_lt"] is not None or asked["end_lt"] is not None
    return cut_walk(
        merge_walks(walks, descending=descending),
        lambda part: _choose(read_rows(part), exact, asked),
        partial(_sort_blocks, descending=descending),
        asked,
        count=None if is_bound else partial(_count_equal, exact) if exact else len,
    )


def _choose(rows: list[Any], exact: Mapping[str, Any], asked: Mapping[str, Any]) -> list[Any]:
    return [
        row
        for row in rows
        if all(row[name] == value for name, value in exact.items())
        and all(is_within(row[name], asked[a], asked[b]) for name, (a, b) in _SPANS.items())
    ]


def _sort_blocks(rows: list[Any], *, descending: bool) -> None:
    rows.sort(key=itemgetter("workchain", "shard"))
    rows.sort(key=itemgetter("gen_utime", "start_lt"), reverse=descending)


def _count_equal(exact: Mapping[str, Any], places: list[Place[SegmentTable]]) -> int:
    """Return how many blocks at places have exact values, of which none is a hash."""
    wanted = [*exact.values()]
    grouped = group_places(places).items()
    return sum([*table.peek(rows, *exact)].count(wanted) for table, rows in grouped)


def list_shards(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v2/shards``."""
    tops = index.segments.read(SHARD_BLOCKS.name, "mc_seqno", asked["mc_seqno"])
    return sorted(
        (row for row in tops if row.workchain != MASTERCHAIN),
        key=lambda row: (row.workchain < 0, row.workchain, row.shard < 0, row.shard),
    )


def list_shard_tops(index: Index, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Answer ``v3/shard_tops``."""
    place_of, segments = itemgetter(*_PLACE), index.segments
    nothing = dict.fromkeys(BLOCKS.columns)
    rows = []
    tops = segments.read(SHARD_BLOCKS.name, "mc_seqno", asked["mc_seqno"])
    for top in sorted(tops, key=place_of):
        named = {f"top_{name}": top[name] for name in _PLACE}
        found = segments.read(BLOCKS.name, "seqno", top.seqno)
        blocks = [dict(row) for row in found if place_of(row) == place_of(top)]
        rows += [named | block for block in blocks or [nothing]]
    return rows
