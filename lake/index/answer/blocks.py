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
_COLUMNS = BLOCKS.columns


def list_blocks(index: Index, asked: Mapping[str, Any]) -> list[Any]:
    """Answer ``v3/blocks``."""
    exact = {name: asked[name] for name in _EXACT if asked[name] is not None}
    keys = [name for name in ("root_hash", "file_hash", "mc_seqno", "seqno") if name in exact]
    tables, descending = index.segments.tables(BLOCKS.name), asked["descending"]
    if keys:
        rows = [row for table in tables for row in table.read(table.find(keys[0], exact[keys[0]]))]
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
    found = [row for row in _list_tops(index, asked["mc_seqno"]) if row.workchain != MASTERCHAIN]
    return sorted(
        found, key=lambda row: (row.workchain < 0, row.workchain, row.shard < 0, row.shard)
    )


def _list_tops(index: Index, mc_seqno: int) -> list[Any]:
    return [
        row
        for table in index.segments.tables(SHARD_BLOCKS.name)
        for row in table.read(table.find("mc_seqno", mc_seqno))
    ]


def list_shard_tops(index: Index, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Answer ``v3/shard_tops``."""
    place_of = itemgetter(*_PLACE)
    nothing = dict.fromkeys(_COLUMNS)
    rows = []
    for top in sorted(_list_tops(index, asked["mc_seqno"]), key=place_of):
        named = {f"top_{name}": top[name] for name in _PLACE}
        blocks = [
            {name: row[name] for name in _COLUMNS}
            for table in index.segments.tables(BLOCKS.name)
            for row in table.read(table.find("seqno", top.seqno))
            if place_of(row) == place_of(top)
        ]
        rows += [named | block for block in blocks or [nothing]]
    return rows
