"""Cached decoded row groups give the same rows as a query."""

from __future__ import annotations

import gc
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lake.chain import Chain, commit_chain, commit_made
from tests.lake.rows import flip_value
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.index.declined import Declined
from tonlake.lake.index.rowgroup import cache as rowgroups
from tonlake.lake.index.rowgroup.cache import RowGroups, gather
from tonlake.lake.index.rowgroup.predicate import AnyOf, Bounds
from tonlake.lake.index.segment.native import NATIVE
from tonlake.lake.log.snapshot import FileWatch, open_snapshot
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.schema.block import BLOCKS
from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from tonlake.lake.index.rowgroup.decoded import Decoded
    from tonlake.lake.log.snapshot import Snapshot

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the extension is not built")

COLUMNS = tuple(name for name in BLOCKS.names if name != "time")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A lake of several files with small row groups."""
    lake = tmp_path_factory.mktemp("groups") / "lake"
    chain = Chain(3, accounts=5)
    for first in (1, 11, 15):
        last = {1: 10, 11: 14, 15: 15}[first]
        commit_made(lake, first, last, chain.make(first, last), LakeSettings(row_group_rows=4))
    return open_snapshot(lake)


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> RowGroups:
    """Start each test with an empty cache and no lower size limit."""
    monkeypatch.setattr(rowgroups, "SMALL_ROWS", 0)
    return keep_nothing(monkeypatch)


def keep_nothing(monkeypatch: pytest.MonkeyPatch) -> RowGroups:
    """Begin with no row groups."""
    groups = RowGroups(1 << 20)
    monkeypatch.setattr(rowgroups, "_KEPT", groups)
    return groups


def ask(snapshot: Snapshot, bounds: Mapping[str, Bounds], *, times: int = 2) -> list[Any] | None:
    """Gather blocks repeatedly; return the last answer in a fixed order, None if declined."""
    found = None
    for _ in range(times):
        try:
            found = sorted(gather(snapshot, "blocks", COLUMNS, bounds), key=repr)
        except Declined:
            found = None
    return found


@cache
def connect_once(snapshot: Snapshot) -> DuckDBPyConnection:
    """Open a snapshot and read its blocks once for all queries, since that is the slow part."""
    connection = connect(snapshot, tables=["blocks"])
    connection.execute("create table known as from blocks")
    return connection


def query(snapshot: Snapshot, where: str) -> list[dict[str, Any]]:
    """Return the same by query."""
    statement = f"select {', '.join(COLUMNS)} from known where {where}"  # noqa: S608 - our own
    rows = connect_once(snapshot).execute(statement).fetchall()
    return sorted((dict(zip(COLUMNS, row, strict=True)) for row in rows), key=repr)


def test_rows_are_those_of_a_query(snapshot: Snapshot) -> None:
    for first, last in ((1, 1), (3, 5), (10, 11), (15, 15)):
        wanted = query(snapshot, f"mc_seqno between {first} and {last}")
        assert wanted
        assert ask(snapshot, {"mc_seqno": (first, last)}) == wanted
    [root_hash] = [row["root_hash"] for row in query(snapshot, "workchain = -1 and seqno = 12")]
    bounds = {"root_hash": (root_hash, root_hash), "mc_seqno": (12, 12)}
    assert ask(snapshot, bounds) == query(snapshot, "workchain = -1 and seqno = 12")
    assert ask(snapshot, {"mc_seqno": (99, 99)}) == []
    assert ask(snapshot, {"mc_seqno": (5, 5), "seqno": (None, None)}) == []


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_of_some_values_are_found(snapshot: Snapshot, data: st.DataObject) -> None:
    seqnos = data.draw(st.lists(st.integers(0, 17), min_size=1))
    lts = sorted(row["start_lt"] for row in query(snapshot, "true"))
    some = data.draw(st.lists(st.sampled_from([*lts, 7]), min_size=1))
    bounds: dict[str, Bounds] = {"mc_seqno": AnyOf(seqnos), "start_lt": AnyOf(some)}
    text = ", ".join(map(str, seqnos)), ", ".join(map(str, some))
    where = f"mc_seqno in ({text[0]}) and start_lt in ({text[1]})"
    assert ask(snapshot, bounds) == query(snapshot, where)
    first, last = data.draw(st.tuples(st.sampled_from(lts), st.sampled_from(lts)))
    where = f"start_lt between {first} and {last} and mc_seqno in ({text[0]})"
    bounds = {"start_lt": (first, last), "mc_seqno": AnyOf(seqnos)}
    assert ask(snapshot, bounds) == query(snapshot, where)


def test_nothing_is_any_of_null(snapshot: Snapshot) -> None:
    assert ask(snapshot, {"prev2_seqno": (1, 99)}) == query(
        snapshot, "prev2_seqno between 1 and 99"
    )


def test_without_reading_only_what_is_decoded_is_found(snapshot: Snapshot) -> None:
    bounds = {"mc_seqno": (3, 5)}
    with pytest.raises(Declined):
        gather(snapshot, "blocks", COLUMNS, bounds, may_read=False)
    assert ask(snapshot, bounds, times=1) is None  # the earlier attempt did not count
    wanted = ask(snapshot, bounds)
    assert wanted
    found = gather(snapshot, "blocks", COLUMNS, bounds, may_read=False)
    assert sorted(found, key=repr) == wanted
    for other in ({"mc_seqno": (3, 15)}, {**bounds, "seqno": (0, 99)}):
        with pytest.raises(Declined):
            gather(snapshot, "blocks", COLUMNS, other, may_read=False)


def test_what_is_asked_for_once_is_left_to_the_query(snapshot: Snapshot) -> None:
    assert ask(snapshot, {"mc_seqno": (3, 3)}, times=1) is None
    assert ask(snapshot, {"mc_seqno": (3, 3)}, times=1)


def test_what_is_small_is_kept_at_once(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowgroups, "SMALL_ROWS", 4)
    assert ask(snapshot, {"mc_seqno": (3, 3)}, times=1) == query(snapshot, "mc_seqno = 3")


def test_what_is_large_is_left_to_the_query(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = {"mc_seqno": (1, 15)}
    monkeypatch.setattr(rowgroups, "MAX_GROUPS", 1000)
    assert ask(snapshot, everything) == query(snapshot, "true")
    monkeypatch.setattr(rowgroups, "MAX_ROWS", len(query(snapshot, "true")) - 1)
    assert ask(snapshot, everything) is None
    monkeypatch.setattr(rowgroups, "MAX_GROUPS", 2)
    assert ask(snapshot, everything) is None
    keep_nothing(monkeypatch)
    monkeypatch.setattr(rowgroups, "MAX_GROUP_BYTES", 1)
    assert ask(snapshot, {"mc_seqno": (3, 3)}) is None


def test_many_small_row_groups_count_as_few(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = {"mc_seqno": (1, 15)}
    monkeypatch.setattr(rowgroups, "MAX_GROUPS", 2)
    monkeypatch.setattr(rowgroups, "SMALL_ROWS", 100)
    assert ask(snapshot, everything, times=1) == query(snapshot, "true")
    monkeypatch.setattr(rowgroups, "SMALL_SHARE", 1)
    assert ask(snapshot, everything) is None


def test_no_more_is_kept_than_may_be(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    small = RowGroups(1)
    monkeypatch.setattr(rowgroups, "_KEPT", small)
    assert ask(snapshot, {"mc_seqno": (3, 3)}) == query(snapshot, "mc_seqno = 3")
    assert small.size_bytes == 0


def test_files_that_are_gone_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowgroups, "FEW_FOOTERS", 4)
    kept = keep_nothing(monkeypatch)
    lake, chain, bounds = tmp_path / "lake", Chain(8, accounts=5), {"mc_seqno": (1, 4)}
    for at in range(1, 5):
        commit_chain(lake, chain, at, at)
    before = open_snapshot(lake)
    wanted, size_bytes = ask(before, bounds), kept.size_bytes
    assert wanted
    compact_lake(lake, LakeSettings(compact_commits=2))
    after = open_snapshot(lake)
    assert {file.path for file in after.files["blocks"]}.isdisjoint(
        file.path for file in before.files["blocks"]
    )
    ask(after, bounds, times=1)
    assert kept.size_bytes == size_bytes  # so few were not looked through yet
    for groups in (kept, keep_nothing(monkeypatch)):
        monkeypatch.setattr(rowgroups, "_KEPT", groups)
        assert ask(after, bounds) == wanted
        assert groups.size_bytes == kept.size_bytes > 0


def test_what_is_read_of_a_file_does_not_wait_for_the_search_for_rubbish(
    snapshot: Snapshot,
) -> None:
    """A file's footer takes 60 to 80 kB, which Python's size of its object does not include."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        ask(snapshot, {"mc_seqno": (1, 15)})
        gc.collect()
        left = {type(one).__name__ for one in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not left.intersection({"FileMetaData", "ParquetSchema", "RowGroupMetaData"})


def test_what_cannot_be_read_is_left_to_the_query(tmp_path: Path) -> None:
    """The query names the error, or knows the columns that an older file does not have."""
    commit_chain(tmp_path / "lake", Chain(3, accounts=5), 1, 3)
    snapshot = open_snapshot(tmp_path / "lake")
    assert ask(snapshot, {"no_such_column": (1, 1)}) is None
    assert ask(snapshot, {"workchain": (-(1 << 40), 0)}) in (
        None,
        query(snapshot, "workchain <= 0"),
    )
    assert not ask(snapshot, {"mc_seqno": (2, 2), "root_hash": (b"", b"")})
    assert ask(snapshot, {"mc_seqno": (2, 2)}) == query(snapshot, "mc_seqno = 2")
    [file] = snapshot.files["blocks"]
    (tmp_path / "lake" / file.path).write_bytes(b"nothing")
    damaged = open_snapshot(tmp_path / "lake")
    assert "blocks" in damaged.damaged
    assert ask(damaged, {"mc_seqno": (2, 2)}) is None


def test_a_page_without_its_checksum_is_left_to_the_query(tmp_path: Path) -> None:
    commit_chain(tmp_path, Chain(3, accounts=5), 1, 3)
    snapshot = open_snapshot(tmp_path, check_digests=False)
    bounds: dict[str, Bounds] = {"mc_seqno": (2, 2)}
    sound = query(snapshot, "mc_seqno = 2")
    [file] = snapshot.files["blocks"]
    flip_value(tmp_path / file.path, sound[0]["root_hash"])
    assert ask(snapshot, bounds) is None


def test_a_file_that_changed_after_it_was_decoded_is_named(tmp_path: Path) -> None:
    commit_chain(tmp_path, Chain(3, accounts=5), 1, 3)
    snapshot = open_snapshot(tmp_path)
    snapshot.watch = FileWatch(tmp_path, snapshot.files, lambda: 0.0)  # it never rests
    bounds: dict[str, Bounds] = {"mc_seqno": (2, 2)}
    rows = ask(snapshot, bounds)
    assert rows
    [file] = snapshot.files["blocks"]
    flip_value(tmp_path / file.path, rows[0]["root_hash"])
    with pytest.raises(LakeCorrupt, match=file.path):
        gather(snapshot, "blocks", COLUMNS, bounds)


def test_a_flipped_bit_in_a_page_is_never_decoded(
    snapshot: Snapshot, kept: RowGroups, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Pages have a checksum: a read gives the same rows or an error."""
    monkeypatch.setattr(rowgroups, "SMALL_ROWS", 100)
    file = snapshot.files["blocks"][0]
    sound = (snapshot.lake_dir / file.path).read_bytes()
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(sound)
    expected = list_rows(kept.read(str(copy), {}, 100))
    start, end = find_pages(copy)
    outcomes = Counter[str]()
    for at in range(start, end, max(1, (end - start) // 400)):
        damaged = bytearray(sound)
        damaged[at] ^= 1 << at % 8
        copy.write_bytes(damaged)
        try:
            found = list_rows(keep_nothing(monkeypatch).read(str(copy), {}, 100))
        except (OSError, pa.ArrowException):
            outcomes["refused"] += 1
        else:
            outcomes["as before" if found == expected else "wrong"] += 1
    assert outcomes["wrong"] == 0
    assert outcomes["refused"] > 100


def find_pages(path: Path) -> tuple[int, int]:
    """Return where the pages of a file begin and end."""
    footer = pq.read_metadata(path)
    columns = [
        footer.row_group(group).column(at)
        for group in range(footer.num_row_groups)
        for at in range(footer.num_columns)
    ]
    starts = [
        min(each.data_page_offset, each.dictionary_page_offset or 1 << 62) for each in columns
    ]
    sizes = [each.total_compressed_size for each in columns]
    return min(starts), max(start + size for start, size in zip(starts, sizes, strict=True))


def list_rows(groups: list[Decoded] | None) -> list[dict[str, Any]]:
    assert groups
    return [row for group in groups for row in group.rows(group.find({}), BLOCKS.names)]
