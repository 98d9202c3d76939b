"""Compaction keeps the same rows in fewer files, with concurrent readers, writers and kills."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.commands import run
from tests.damage import flip_file
from tests.lake.chain import Chain, commit_made
from tests.lake.killed import POINTS, run_killed
from tests.lake.rows import commit_rows, make_tables
from tonlake.lake.commit import commit
from tonlake.lake.commit.commit import commit_range
from tonlake.lake.commit.rewrite import commit_maintenance
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.file.rows import read_rows
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.index.index import KeptRows, open_segments
from tonlake.lake.log.place import list_places
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import DataFile, LogState, read_state
from tonlake.lake.maintenance import compact
from tonlake.lake.maintenance.compact import Merge, compact_lake, plan_merges
from tonlake.lake.maintenance.orphan import list_orphans, sweep_orphans
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSettings

DAY = "2024-01-01"
OPTIONS = LakeSettings(compact_rows=38, row_group_rows=16)
BASE = ("blocks", "transactions", "state_cells", "transaction_traces")


@pytest.fixture(autouse=True)
def few_rows_in_memory() -> Iterator[None]:
    with mock.patch.object(compact, "MEMORY_ROWS", 15):
        yield


def commit_small(lake: Path, first: int, last: int, *, day: str = DAY, rows: int = 9) -> None:
    """Commit masterchain blocks one by one."""
    for at in range(first, last + 1):
        commit_rows(lake, at, at, day=day, rows=rows, tables=BASE)


def read_all(lake: Path, number: int | None = None) -> dict[str, list[Any]]:
    """Return all rows of every table as text, sorted; unchanged rows appear once."""
    found: dict[str, list[Any]] = {}
    for name, files in open_snapshot(lake, number).files.items():
        rows = [row for file in files for row in read_rows(lake, file).to_pylist()]
        if name == "state_cells":
            rows = list({row["hash"]: row for row in reversed(rows)}.values())
        found[name] = sorted(map(str, rows))
    return found


@pytest.fixture(scope="module")
def uncompacted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of twelve commits of one block each, with a hole and two days, to be copied."""
    lake = tmp_path_factory.mktemp("many") / "lake"
    commit_small(lake, 1, 5)
    commit_small(lake, 8, 11)
    commit_small(lake, 12, 14, day="2024-01-02")
    return lake


@pytest.fixture
def many(uncompacted: Path, tmp_path: Path) -> Path:
    """A writable copy of the lake of twelve commits."""
    return shutil.copytree(uncompacted, tmp_path / "lake")


def test_rows_stay_as_they_are(many: Path) -> None:
    before = read_all(many)
    report = compact_lake(many, OPTIONS)
    snapshot = open_snapshot(many)
    assert read_all(many) == before
    assert not verify_lake(many).damage
    assert report.files_before == 11 * len(BASE)
    assert report.files_after < report.files_before / 2
    spans = [(place.first, place.last) for place in list_places(read_state(many))]
    assert spans == [(1, 4), (5, 5), (8, 11), (12, 14)]
    sizes = [file.rows for files in snapshot.files.values() for file in files]
    assert max(sizes) <= OPTIONS.compact_rows
    assert {place.day for place in list_places(read_state(many))} == {DAY, "2024-01-02"}


def test_merged_files_are_those_of_one_commit(tmp_path: Path) -> None:
    lake, whole = tmp_path / "lake", tmp_path / "whole"
    names = [name for name in BASE if name != "state_cells"]
    parts = [make_tables(at, at, rows=9, names=names) for at in (1, 2, 3)]
    for at, tables in enumerate(parts, 1):
        commit_made(lake, at, at, tables, OPTIONS, day=DAY)
    joined = {name: pa.concat_tables([part[name] for part in parts]) for name in names}
    commit_made(whole, 1, 3, joined, OPTIONS, day=DAY)
    compact_lake(lake, OPTIONS)
    made, wanted = (
        {file.path: file.sha256 for file in read_state(folder).files} for folder in (lake, whole)
    )
    assert made == wanted


@mock.patch.object(compact, "MEMORY_ROWS", 20)
def test_state_cells_stay_once(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    cells = make_tables(1, 1, rows=30, names=["state_cells"])["state_cells"]
    for at in (1, 2, 3):
        tables = make_tables(at, at, rows=30, names=["blocks", "state_cells"])
        seqnos = pa.array([at] * 30, pa.int64())
        shared = cells.set_column(1, cells.schema.field("mc_seqno"), seqnos)
        tables["state_cells"] = pa.concat_tables([tables["state_cells"], shared])
        if at == 1:
            tables["state_cells"] = shared
        commit_range(lake, tables, first_mc_seqno=at, last_mc_seqno=at, day=DAY, source={})
    before = read_all(lake)["state_cells"]
    compact_lake(lake, LakeSettings())
    snapshot = open_snapshot(lake)
    assert read_all(lake)["state_cells"] == before
    assert [file.rows for file in snapshot.files["state_cells"]] == [90]


def test_readers_of_before_go_on_until_they_and_the_grace_time_are_over(many: Path) -> None:
    before = open_snapshot(many)
    connection = connect(before, statement="from transactions")
    count = connection.table("transactions").count("*").fetchall()
    compact_lake(many, OPTIONS)
    sweep_orphans(many, LakeSettings(orphan_grace_s=3600))
    assert connection.table("transactions").count("*").fetchall() == count
    assert read_all(many, before.number) == read_all(many)
    assert not sweep_orphans(many, LakeSettings(orphan_grace_s=0))
    assert before.lease is not None
    before.lease.close()
    assert sweep_orphans(many, LakeSettings(orphan_grace_s=0))
    assert not list_orphans(many, read_state(many))


def test_runs_stay_right(tmp_path: Path) -> None:
    many, chain = tmp_path / "lake", Chain(7)
    for at in range(1, 9):
        commit_traced(many, chain, at)
    rebuild_index(many)
    commit_traced(many, chain, 9)
    commit_traced(many, chain, 10)
    before = read_state(many)
    compact_lake(many, msgspec.structs.replace(OPTIONS, compact_rows=1000))
    lookups = open_segments(open_snapshot(many), OPTIONS)
    assert lookups is not None
    assert not lookups.stale
    assert [one.path for one in read_state(many).segments] == [one.path for one in before.segments]
    places = [(place.first, place.last) for place in list_places(read_state(many))]
    assert places == [(1, 8), (9, 10)]
    assert read_state(many).segments[0].traces != before.segments[0].traces


def commit_traced(lake: Path, chain: Chain, at: int) -> None:
    """Commit a block with the given rows of traces."""
    tables = chain.make(at, at)
    traces = make_tables(at, at, rows=3, names=["transaction_traces"])
    commit_made(lake, at, at, tables | traces)


def test_stale_runs_stay_stale(tmp_path: Path) -> None:
    many, chain = tmp_path / "lake", Chain(8)
    for at in range(1, 4):
        commit_traced(many, chain, at)
    rebuild_index(many)
    state = read_state(many)
    segments = tuple(msgspec.structs.replace(one, traces="0" * 64) for one in state.segments)
    commit_maintenance(many, state, segments=segments)
    compact_lake(many, OPTIONS)
    lookups = open_segments(open_snapshot(many), OPTIONS)
    assert lookups is not None
    assert lookups.stale


def make_state(sizes: list[int]) -> LogState:
    """Create the state of a lake with a commit of that many transactions for each block."""
    files = [
        DataFile(f"transactions/day={DAY}/{at}-{at}-00.parquet", "transactions", rows, 1, "", 1)
        for at, rows in enumerate(sizes, 1)
    ]
    return LogState(number=1, files=tuple(files), ranges=((1, len(sizes)),))


@given(sizes=st.lists(st.sampled_from([1, 1, 2, 5, 40]), min_size=1, max_size=150))
@settings(max_examples=20, deadline=None)
def test_the_tail_is_merged_in_steps(sizes: list[int]) -> None:
    options = msgspec.structs.replace(OPTIONS, compact_rows=1000, compact_commits=4)
    written = 0
    files: list[DataFile] = []
    for at in range(1, len(sizes) + 1):
        files.append(make_state(sizes[:at]).files[-1])
        state = msgspec.structs.replace(make_state(sizes[:at]), files=tuple(files))
        while stretches := plan_merges(state, options, "tail"):
            for place, old in stretches:
                rows = sum(file.rows for file in old)
                written += rows
                path = f"transactions/day={DAY}/{place.first}-{place.last}-00.parquet"
                files = [file for file in files if file not in old]
                files.append(DataFile(path, "transactions", rows, 1, "", 1))
            state = msgspec.structs.replace(state, files=tuple(files))
    assert sum(file.rows for file in files) == sum(sizes)
    steps = 5
    assert len(files) <= 4 * steps + sum(sizes) // (1000 // 4)
    assert written <= steps * sum(sizes)
    off = msgspec.structs.replace(options, compact_commits=0)
    assert plan_merges(make_state(sizes), off, "tail") == []


def test_past_days_are_merged_completely(many: Path) -> None:
    options = msgspec.structs.replace(OPTIONS, compact_rows=1000)
    compact_lake(many, options, depth="tail")
    places = list_places(read_state(many))
    assert [(place.first, place.last) for place in places[:2]] == [(1, 5), (8, 11)]
    assert len(places) == 5


def test_what_changed_meanwhile_is_planned_again(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another compaction and a commit finish while ours merges its first files."""
    before = read_all(many)
    original = compact._write_merge
    small = msgspec.structs.replace(OPTIONS, compact_rows=20)
    others: list[Callable[[], object]] = [
        partial(compact_lake, many, small),
        partial(commit_small, many, 15, 15),
    ]

    def merge(
        lake: Path, planned: Merge, settings: LakeSettings, kept: KeptRows | None
    ) -> list[Any]:
        added = original(lake, planned, settings, kept)
        if settings is OPTIONS and others:
            monkeypatch.setattr(compact, "_write_merge", original)
            others.pop(0)()
            monkeypatch.setattr(compact, "_write_merge", merge)
        return added

    monkeypatch.setattr(compact, "_write_merge", merge)
    compact_lake(many, OPTIONS)
    assert not others
    snapshot = open_snapshot(many)
    assert snapshot.last_mc_seqno == 15
    count = "select count(*) from transactions where mc_seqno < 15"
    rows = connect(snapshot, statement=count).execute(count).fetchall()
    assert rows[0][0] == len(before["transactions"])
    assert not verify_lake(many).damage


def test_a_damaged_file_is_never_merged(many: Path) -> None:
    state = read_state(many)
    broken = next(file for file in state.files if file.table == "transactions")
    flip_file(many / broken.path)
    with pytest.raises(LakeCorrupt, match="transactions"):
        compact_lake(many, OPTIONS)
    assert read_state(many).files == state.files
    assert not list_orphans(many, state)


LATER = ("log.linked:2", "checkpoint.renamed")
"""Points after the second commit."""

KILLED_AT = [
    *(point for point in POINTS if point.startswith(("merge", "compact"))),
    *("merge.renamed:3", "log.synced", "log.linked", *LATER),
]


@mock.patch.object(commit, "CHECKPOINT_COMMITS", 2)
@pytest.mark.parametrize("point", KILLED_AT)
def test_killed_while_compacting(many: Path, point: str) -> None:
    before = read_all(many)
    number = read_state(many).number
    assert run_killed(lambda: compact_lake(many, OPTIONS), point)
    state: LogState = read_state(many)
    after = ("log.linked", "log.unlinked", "log.folder")
    assert state.number - number == (2 if point in LATER else point.startswith(after))
    assert read_all(many) == before
    assert not verify_lake(many).damage
    compact_lake(many, OPTIONS)
    sweep_orphans(many, LakeSettings(orphan_grace_s=0))
    assert read_all(many) == before
    assert not list_orphans(many, read_state(many))


def test_command_reports_what_it_did(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONLAKE_LAKE_COMPACT_ROWS", "38")
    first = run("compact", "--lake", many)
    assert first.exit_code == 0, first.output
    assert f"{11 * len(BASE)} files" in first.output
    again = run("compact", "--lake", many)
    assert "nothing to merge" in again.output
    result = run("compact", "--lake", many, "--json")
    assert msgspec.json.decode(result.output)["commits"] == 0
    missing = run("compact", "--lake", many.parent)
    assert missing.exit_code == 1
    assert "holds no lake" in missing.output
