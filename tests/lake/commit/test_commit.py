"""Commits: the state of the lake after any sequence of them, and after a refused one."""

import errno
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.lake.chain import commit_made
from tests.lake.rows import commit_rows, file_bytes, make_table, make_tables
from tonlake.lake.commit import commit
from tonlake.lake.commit.commit import check_tables, commit_range
from tonlake.lake.commit.rewrite import spool_files
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import (
    CommitConflict,
    LakeFull,
    NetworkMismatch,
    RangeOverlap,
    RowsRejected,
)
from tonlake.lake.file import datafile
from tonlake.lake.file.datafile import Written
from tonlake.lake.log.place import Derivation, NewFile, Place
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import LogState, NetworkId, read_commit, read_state
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import TABLES

ROOT = Path(__file__).resolve().parents[3]
TWO = ("blocks", "transactions")
every_three = mock.patch.object(commit, "CHECKPOINT_COMMITS", 3)


def read_table(lake: Path, name: str, number: int | None = None) -> pa.Table:
    """Return all rows of a table as of a commit, in the order of the files."""
    files = open_snapshot(lake, number).files[name]
    parts = [pq.read_table(lake / file.path, partitioning=None) for file in files]
    return pa.concat_tables(parts) if parts else TABLES[name].arrow.empty_table()


def sorted_rows(name: str, first: int, last: int) -> pa.Table:
    """Return the rows that ``commit_rows`` commits for a range, as a file has them."""
    rows = make_tables(first, last, rows=2, names=[name])[name]
    return rows.sort_by([(column, "ascending") for column in TABLES[name].sort])


@every_three
@examples(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.integers(0, 9)).map(lambda at: (at[0], at[0] + at[1])),
        max_size=8,
    )
)
def test_any_sequence_of_commits(
    tmp_path_factory: pytest.TempPathFactory, ranges: list[tuple[int, int]]
) -> None:
    lake = tmp_path_factory.mktemp("any") / "lake"
    model: list[tuple[int, int]] = []
    for first, last in ranges:
        if any(first <= known[1] and known[0] <= last for known in model):
            before = file_bytes(lake)
            with pytest.raises(RangeOverlap, match="already"):
                commit_rows(lake, first, last, rows=2, tables=TWO)
            assert file_bytes(lake) == before
        else:
            model.append((first, last))
            made = commit_rows(lake, first, last, rows=2, tables=TWO)
            assert made == read_commit(lake, len(model))[0]
    for number in range(1, len(model) + 1):
        for name in ("transactions", "blocks"):
            expected = pa.concat_tables([sorted_rows(name, *at) for at in model[:number]])
            assert read_table(lake, name, number).equals(expected)
    if model:
        assert not verify_lake(lake).damage


def test_a_commit_states_what_it_added(tmp_path: Path) -> None:
    network = NetworkId(-239, "aa", "bb")
    commit_rows(tmp_path, 1, 3)
    made = commit_rows(tmp_path, 5, 9, source={"b": "2", "a": "1"}, network=network)
    assert (made.number, made.first_mc_seqno, made.last_mc_seqno) == (2, 5, 9)
    assert made.day == "2024-01-06"
    assert made.source == {"a": "1", "b": "2"}
    assert made.network == network
    assert made.shards == {"-1:8000000000000000": (5, 9)}
    assert made.removed == ()
    assert not made.zero_state
    assert [file.table for file in made.added] == sorted(TABLES)
    for file in made.added:
        assert (tmp_path / file.path).stat().st_size == file.bytes
        assert file.path.startswith(f"{file.table}/day=2024-01-06/5-9-{file.sha256[:16]}")
        assert pq.read_metadata(tmp_path / file.path).num_rows == file.rows


def test_shards_of_a_split(tmp_path: Path) -> None:
    blocks = make_table("blocks", 1, 1, rows=3)
    columns = {
        "workchain": pa.array([0, 0, 0], pa.int32()),
        "shard": pa.array([2**62, -(2**62), 2**62], pa.int64()),
        "seqno": pa.array([7, 4, 9], pa.int64()),
    }
    for name, values in columns.items():
        blocks = blocks.set_column(blocks.column_names.index(name), name, values)
    made = commit_made(tmp_path, 1, 1, {"blocks": blocks})
    assert made.shards == {"0:4000000000000000": (7, 9), "0:c000000000000000": (4, 4)}


def test_zero_state_belongs_to_the_first_block(tmp_path: Path) -> None:
    rows = {"config_params": make_table("config_params", 0, 0)}
    options: dict[str, Any] = {"day": "2024-01-01", "source": {}, "last_mc_seqno": 9}
    with pytest.raises(RowsRejected, match=r"0\.\.0"):
        commit_range(tmp_path, rows, first_mc_seqno=2, **options)
    assert commit_range(tmp_path, rows, first_mc_seqno=1, **options).zero_state
    assert read_state(tmp_path).ranges == ((1, 9),)


def test_a_range_without_rows_is_covered_all_the_same(tmp_path: Path) -> None:
    empty = {name: table.arrow.empty_table() for name, table in TABLES.items()}
    made = commit_made(tmp_path, 4, 6, empty)
    assert (made.added, made.shards) == ((), {})
    assert read_state(tmp_path).ranges == ((4, 6),)
    assert not list(tmp_path.rglob("*.parquet"))


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        for first, last in ((1, 10), (11, 12), (20, 25)):
            commit_rows(tmp_path / name, first, last)
    assert file_bytes(tmp_path / "one") == file_bytes(tmp_path / "two")


def test_another_network_is_refused(tmp_path: Path) -> None:
    commit_rows(tmp_path, 1, 3, network=NetworkId(-239))
    before = file_bytes(tmp_path)
    with pytest.raises(NetworkMismatch):
        commit_rows(tmp_path, 4, 6, network=NetworkId(-3))
    assert file_bytes(tmp_path) == before
    commit_rows(tmp_path, 4, 6, network=None)
    assert read_state(tmp_path).network == NetworkId(-239)


def test_refused_rows_leave_no_lake(tmp_path: Path) -> None:
    with pytest.raises(RowsRejected):
        commit_rows(tmp_path / "lake", 5, 7, day="tomorrow")
    assert not (tmp_path / "lake").exists()


def test_a_writer_that_our_lock_does_not_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine's writer links the entry after we read the log and before we link ours."""
    commit_rows(tmp_path / "lake", 1, 3)
    shutil.copytree(tmp_path / "lake", tmp_path / "theirs")
    commit_rows(tmp_path / "theirs", 10, 12)
    link = os.link

    def link_second(source: Path, target: Path) -> None:
        shutil.copytree(tmp_path / "theirs", tmp_path / "lake", dirs_exist_ok=True)
        link(source, target)

    monkeypatch.setattr(os, "link", link_second)
    with pytest.raises(CommitConflict, match=r"_log/2\.json"):
        commit_rows(tmp_path / "lake", 4, 6)
    monkeypatch.undo()
    assert read_state(tmp_path / "lake").ranges == ((1, 3), (10, 12))
    report = verify_lake(tmp_path / "lake")
    assert (report.damage, report.orphans) == ([], [])
    commit_rows(tmp_path / "lake", 4, 6)
    assert read_state(tmp_path / "lake").ranges == ((1, 6), (10, 12))
    assert not list((tmp_path / "lake" / "_log").glob(".tmp-*"))


WRITER = """
import sys
from pathlib import Path
from tonlake.lake.errors import RangeOverlap
from tests.lake.rows import commit_rows
won = 0
for first in range(1, 20, 2):
    try:
        commit_rows(Path(sys.argv[1]), first, first + 1, rows=1, tables=['blocks'])
        won += 1
    except RangeOverlap:
        pass
print(won)
"""


def test_two_writers_share_the_work(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "lake")],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    won = [int(writer.communicate()[0]) for writer in writers]
    assert sum(won) == 10
    assert read_state(tmp_path / "lake").ranges == ((1, 20),)
    report = verify_lake(tmp_path / "lake")
    assert (report.commits, report.damage, report.orphans) == (10, [], [])


def test_a_reader_keeps_its_commit(lake: Path) -> None:
    pinned = open_snapshot(lake)
    count = "select count(*), sum(lt::hugeint) from transactions"
    connection = connect(pinned, statement=count)
    before = connection.execute(count).fetchall()
    commit_rows(lake, 31, 40)
    assert connection.execute(count).fetchall() == before
    assert connect(pinned, statement=count).execute(count).fetchall() == before
    newer = open_snapshot(lake)
    assert connect(newer, statement=count).execute(count).fetchall() != before
    assert (pinned.number, newer.number) == (3, 4)


@pytest.mark.parametrize("limit_bytes", [0, 2900, 10_000])
def test_a_file_that_has_no_room(tmp_path: Path, limit_bytes: int) -> None:
    """The kernel refuses the write: the lake is unchanged, and the commit succeeds later."""
    lake = tmp_path / "lake"
    commit_rows(lake, 1, 3)
    before = file_bytes(lake)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        with pytest.raises(LakeFull, match=f"no room to write {lake}/"):
            commit_rows(lake, 4, 6)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file_bytes(lake) == before
    commit_rows(lake, 4, 6)
    assert read_state(lake).ranges == ((1, 6),)


def test_a_link_that_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_rows(tmp_path, 1, 3)
    before = file_bytes(tmp_path)

    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(LakeFull, match=r"_log/2\.json"):
        commit_rows(tmp_path, 4, 6)
    assert file_bytes(tmp_path) == before


@mock.patch.object(datafile, "PLAIN_ROWS", 0)
def test_files_of_a_stage_are_begun_before_the_next_is_derived(tmp_path: Path) -> None:
    begun: list[str] = []

    def submit(work: Callable[[NewFile], Written], file: NewFile) -> Future[Written]:
        begun.append(file.table)
        return pool.submit(work, file)

    def derive(_state: LogState, _rows: object, place: Place) -> Iterator[Derivation]:
        for name in ("traces", "open_edges"):
            assert name not in begun
            yield Derivation([NewFile(name, place, make_table(name, 1, 9))], frozenset())
            assert begun[-1] == name

    with ThreadPoolExecutor(1) as pool:
        tables = make_tables(1, 9, names=["blocks"])
        made = commit_made(tmp_path, 1, 9, tables, derive=derive, submit=submit)
    assert [file.table for file in made.added] == begun == ["blocks", "traces", "open_edges"]


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_every_table_enter(name: str) -> None:
    rows = make_table(name, 5, 9)
    checked = check_tables({name: rows}, (5, 9), "2024-02-29")
    assert checked[name].schema == TABLES[name].arrow
    assert checked[name].equals(rows)


@pytest.mark.parametrize("mc_range", [(0, 5), (6, 5), (-1, -1)])
def test_no_range(mc_range: tuple[int, int]) -> None:
    with pytest.raises(RowsRejected, match="not a range"):
        check_tables({}, mc_range, "2024-01-01")


@pytest.mark.parametrize("day", ["", "2024-1-1", "2023-02-29", "20240101", "../../etc"])
def test_no_day(day: str) -> None:
    with pytest.raises(RowsRejected, match="not a day"):
        check_tables({}, (1, 5), day)


@pytest.mark.parametrize("mc_range", [(2, 9), (1, 8)])
def test_rows_outside_the_range(mc_range: tuple[int, int]) -> None:
    with pytest.raises(RowsRejected, match=r"rows of blocks are of masterchain blocks 1\.\.9"):
        check_tables(make_tables(1, 9), mc_range, "2024-01-01")


def test_unknown_table() -> None:
    with pytest.raises(RowsRejected, match="no table teapots"):
        check_tables({"teapots": make_table("blocks", 1, 1)}, (1, 1), "2024-01-01")


def test_columns_types_and_nulls_are_those_of_the_schema() -> None:
    rows = make_table("libraries", 1, 3)
    renamed = rows.rename_columns(["mc_seqno", "hash", "gone", "publishers"])
    retyped = rows.set_column(1, "hash", rows["hash"].cast(pa.binary()))
    holes = pa.array([None] * rows.num_rows, pa.bool_())
    with_nulls = rows.set_column(2, pa.field("present", pa.bool_()), holes)
    for wrong, message in (
        (renamed, "columns"),
        (retyped, "libraries.hash is binary"),
        (with_nulls, "libraries.present has NULLs"),
    ):
        with pytest.raises(RowsRejected, match=message):
            check_tables({"libraries": wrong}, (1, 3), "2024-01-01")


def test_nullable_fields_are_tightened_to_the_schema() -> None:
    rows = make_table("shard_blocks", 1, 3)
    loose = pa.table(rows.columns, names=rows.column_names)
    checked = check_tables({"shard_blocks": loose}, (1, 3), "2024-01-01")
    assert not checked["shard_blocks"].schema.field("root_hash").nullable


def test_a_full_disk_is_named_while_rows_are_spooled(tmp_path: Path) -> None:
    file = NewFile("blocks", Place(1, 1, "2024-01-02"), TABLES["blocks"].empty)
    full = Path("/dev/full").open("w+b")  # noqa: SIM115 - closed by spool_files
    with (
        mock.patch.object(tempfile, "TemporaryFile", return_value=full),
        pytest.raises(LakeFull, match=f"{tmp_path}/_log"),
        spool_files(tmp_path, [file, file]),
    ):
        pass
