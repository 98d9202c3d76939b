"""Chains whose blocks share seconds: look-ups by time are right, or refused at the edges of a lake.

Since 2026 two or three masterchain blocks have the same time.
"""

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake.chain import commit_made
from tests.lake.opened import open_views
from tests.lake.rows import SHARD, make_table
from tests.patience import PATIENT
from tonlake.api.chain.block import find_block_at
from tonlake.api.errors import LiteServerError, NotCovered
from tonlake.api.python.account import find_seqno
from tonlake.api.v3.page.operation import check_no_gap, read_extents
from tonlake.lake.index.index import open_index
from tonlake.lake.log.following import Following, measure_lag, write_following
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema import BLOCKS, SHARD_BLOCKS
from tonlake.queries.reader import Reader

BEGIN = 1_800_000_000
MASTER, BASE = -1, 0


class Made(NamedTuple):
    """A block of a drawn chain."""

    workchain: int
    seqno: int
    mc_seqno: int
    utime: int
    start_lt: int


class Chain(NamedTuple):
    """All blocks of a drawn chain, and the ranges of them that a lake has."""

    blocks: list[Made]
    ranges: list[tuple[int, int]]

    def kept(self) -> list[Made]:
        return [
            block
            for block in self.blocks
            if any(first <= block.mc_seqno <= last for first, last in self.ranges)
        ]


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """Draw masterchain blocks zero to two seconds apart, with up to two shard blocks each."""
    blocks: list[Made] = []
    utime, lt, seqno, shard_utime = BEGIN, 1000, 0, BEGIN
    count = draw(st.integers(4, 14))
    for mc_seqno in range(1, count + 1):
        utime += draw(st.sampled_from((0, 0, 0, 1, 2)))
        for _ in range(draw(st.integers(1 if mc_seqno == 1 else 0, 2))):
            seqno, lt = seqno + 1, lt + 10
            shard_utime = draw(st.integers(shard_utime, utime))
            blocks.append(Made(BASE, seqno, mc_seqno, shard_utime, lt))
        lt += 10
        blocks.append(Made(MASTER, mc_seqno, mc_seqno, utime, lt))
    first = draw(st.integers(1, count))
    last = draw(st.integers(first, count))
    ranges = [(first, last)]
    if last + 2 <= count and draw(st.booleans()):
        again = draw(st.integers(last + 2, count))
        ranges.append((again, draw(st.integers(again, count))))
    return Chain(blocks, ranges)


def write_lake(lake_dir: Path, chain: Chain) -> None:
    """Commit the blocks of the chain's ranges, and the shard tops of each masterchain block."""
    for first, last in chain.ranges:
        mine = [block for block in chain.blocks if first <= block.mc_seqno <= last]
        tops = []
        for mc_seqno in range(first, last + 1):
            known = [block for block in chain.blocks if block.mc_seqno <= mc_seqno]
            newest = {block.workchain: block for block in known}
            tops += [(mc_seqno, block) for block in newest.values()]
        tables = {
            BLOCKS.name: _fill(BLOCKS.name, [(block.mc_seqno, block) for block in mine]),
            SHARD_BLOCKS.name: _fill(SHARD_BLOCKS.name, tops),
        }
        commit_made(lake_dir, first, last, tables, day="2027-01-15")


def _fill(name: str, blocks: list[tuple[int, Made]]) -> pa.Table:
    """Return random rows of a table with the place and the times of these blocks."""
    rows = make_table(name, 1, 1, rows=len(blocks))
    columns: dict[str, list[Any]] = {
        "workchain": [block.workchain for _, block in blocks],
        "shard": [SHARD] * len(blocks),
        "seqno": [block.seqno for _, block in blocks],
        "mc_seqno": [mc_seqno for mc_seqno, _ in blocks],
        "gen_utime": [block.utime for _, block in blocks],
        "start_lt": [block.start_lt for _, block in blocks],
        "end_lt": [block.start_lt + 5 for _, block in blocks],
        "prev_shard": [SHARD] * len(blocks),
        "prev_seqno": [block.seqno - 1 for _, block in blocks],
    }
    for column, values in columns.items():
        if column in rows.column_names:
            place = rows.column_names.index(column)
            field = rows.schema.field(place)
            rows = rows.set_column(place, field, pa.array(values, field.type))
    return rows


def find_first(chain: Chain, workchain: int, utime: int) -> Made | None:
    """Return the first block of a workchain at or after a time."""
    mine = (each for each in chain.blocks if each.workchain == workchain and each.utime >= utime)
    return min(mine, key=lambda block: block.seqno, default=None)


def list_moments(chain: Chain) -> range:
    """Return every second of a chain, and those around it."""
    times = [block.utime for block in chain.blocks]
    return range(min(times) - 1, max(times) + 2)


@settings(max_examples=10)
@given(chains())
def test_blocks_by_time(chain: Chain) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_lake(Path(folder), chain)
        snapshot = open_snapshot(Path(folder))
        views = open_views(snapshot)
        reader = Reader(snapshot, views, index=open_index(snapshot, PATIENT.lake))
        call: Any = SimpleNamespace(reader=reader)
        for utime in list_moments(chain):
            _check_first(call, chain, utime)
            _check_last(call, chain, utime)
        _check_coverage(reader, chain)
        _check_pages(reader, Reader(snapshot, views), chain)


def _check_first(call: Any, chain: Chain, utime: int) -> None:
    """``lookupBlock`` gives the first block of the whole chain, or refuses."""
    for workchain in (MASTER, BASE):
        wanted = find_first(chain, workchain, utime)
        try:
            found = find_block_at(call, workchain, SHARD, utime=utime)
        except LiteServerError:
            if wanted is not None:
                # The lake lacks the block, or the one before, which could be of the same second.
                kept = {each.seqno for each in chain.kept() if each.workchain == workchain}
                assert not {wanted.seqno, wanted.seqno - 1 or wanted.seqno} <= kept
            continue
        assert wanted is not None
        assert found["seqno"] == wanted.seqno


def _check_last(call: Any, chain: Chain, utime: int) -> None:
    """A time in the past gives the last block up to it, unless a hole may have that block."""
    newest = chain.ranges[-1][1]
    masters = [each for each in chain.blocks if each.workchain == MASTER]
    until = [each.seqno for each in masters if each.utime <= utime and each.seqno <= newest]
    try:
        found = find_seqno(call, datetime.fromtimestamp(utime, UTC))
    except NotCovered:
        return
    assert found == until[-1]


def _check_coverage(reader: Reader, chain: Chain) -> None:
    """Within the whole part of an extent, the lake has every block of the chain."""
    newest = chain.ranges[-1][1]
    kept = set(chain.kept())
    for extent in read_extents(reader):
        first, last = extent.whole_utime
        low, high = extent.whole_lt
        is_newest = extent.mc_seqno[1] == newest
        for block in chain.blocks:
            if block in kept or (is_newest and block.mc_seqno > newest):
                continue
            assert not first <= block.utime or not (is_newest or block.utime <= last)
            assert not low <= block.start_lt or not (is_newest or block.start_lt <= high)
    for utime in list_moments(chain):
        lost = [each for each in chain.blocks if each.utime == utime and each.mc_seqno <= newest]
        try:
            check_no_gap(reader, utime=(utime, utime))
        except NotCovered:
            continue
        assert set(lost) <= kept


def _check_pages(indexed: Reader, plain: Reader, chain: Chain) -> None:
    """Pages of one to three blocks are consecutive, by the index and by SQL."""
    for descending in (False, True):
        ordered = sorted(chain.kept(), key=lambda block: block.workchain)
        ordered.sort(key=lambda block: (block.utime, block.start_lt), reverse=descending)
        for utime in (None, *list_moments(chain)):
            wanted = [each for each in ordered if utime is None or each.utime <= utime]
            page = {"descending": descending, "limit": 3, "offset": len(wanted) // 2}
            for reader in (indexed, plain):
                rows = reader.rows("v3/blocks", end_utime=utime, **page)
                found = [(row["workchain"], row["seqno"]) for row in rows]
                part = wanted[page["offset"] :][:3]
                assert found == [(each.workchain, each.seqno) for each in part]


@given(
    node=st.tuples(st.integers(0, 20), st.integers(0, 5)),
    behind=st.tuples(st.integers(0, 20), st.integers(0, 5)),
    since_s=st.floats(0, 10),
)
def test_a_lag_is_never_negative(
    node: tuple[int, int], behind: tuple[int, int], since_s: float
) -> None:
    """Blocks of the same second are no seconds behind; the time since the last look counts."""
    (mc_seqno, second), (blocks, seconds) = node, behind
    lake_last = max(0, mc_seqno - blocks)
    with tempfile.TemporaryDirectory() as folder:
        note = Following(
            pid=1,
            looked_at=100.0,
            node_last_mc_seqno=mc_seqno,
            lake_last_mc_seqno=lake_last,
            node_last_utime=BEGIN + second,
            lake_last_utime=BEGIN + second - seconds,
        )
        write_following(Path(folder), note)
        state: Any = SimpleNamespace(ranges=((1, lake_last),) if lake_last else ())
        lag = measure_lag(Path(folder), state, now_s=100.0 + since_s)
    assert lag.lag_s is not None
    late_s = seconds if lake_last < mc_seqno else 0
    assert lag.lag_s == pytest.approx(late_s + since_s, abs=0.001)
