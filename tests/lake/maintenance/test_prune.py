"""Pruning: removed and kept rows, and a lake before or after it wherever it is killed."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from tests import commands
from tests.conftest import ingest_all
from tests.damage import flip_file
from tests.lake.killed import run_killed
from tests.lake.rows import commit_days, commit_rows, file_bytes
from tonlake.ingest.derive.stages import rebuild
from tonlake.ingest.settings import IngestSections
from tonlake.lake.copy.pull import copy_lake
from tonlake.lake.duck.connection import DERIVED_VIEWS, connect
from tonlake.lake.errors import LakeCorrupt, PruneRefused, RangeOverlap, UndoRefused
from tonlake.lake.index.index import open_index
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import LogReader, LogState, read_commit, read_state
from tonlake.lake.maintenance import removal
from tonlake.lake.maintenance.kept import keep_ends, keep_newest
from tonlake.lake.maintenance.orphan import list_orphans, sweep_orphans
from tonlake.lake.maintenance.removal import PruneReport, prune_lake, undo_after
from tonlake.lake.maintenance.schedule import maintain_once
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import HISTORY_TABLES, TABLES
from tonlake.lake.settings import LakeSettings

SETTINGS = LakeSettings()
BORDERS = (12, 137)
"""Each lies within a trace of the demo network."""

LAST = 238
READ = (*TABLES, *DERIVED_VIEWS)
Rows = list[tuple[Any, ...]]
_OTHERWISE = {"traces": "mc_seqno_end", "action_ranges": "first_mc_seqno"}


@pytest.fixture
def lake(indexed: Path, tmp_path: Path) -> Path:
    """A writable copy of the demo lake."""
    return shutil.copytree(indexed, tmp_path / "lake")


Ask = Callable[..., Rows]


@contextmanager
def opened(lake: Path) -> Iterator[Ask]:
    """Provide the SQL access to a lake."""
    with closing(connect(open_snapshot(lake), statement=" ".join(READ))) as connection:
        yield lambda text, **parameters: connection.execute(text, parameters).fetchall()


def list_later(ask: Ask, table: str, border: int) -> Rows:
    """Return the rows of blocks from a border on."""
    column = _OTHERWISE.get(table, "mc_seqno")
    return ask(
        f"select * exclude (day) from {table} where {column} >= $border order by all",  # noqa: S608
        border=border,
    )


def read_all(lake: Path) -> dict[str, Rows]:
    with opened(lake) as ask:
        found = {
            name: ask(f"select * exclude (day) from {name} order by all")  # noqa: S608
            for name in TABLES.keys() - {"interfaces"}
        }
        # Their first block depends on how commits were cut.
        codes = "select distinct code_hash, methods, names from interfaces order by all"
        return found | {"interfaces": ask(codes)}


_TREES = """
with recursive reached as (
    select distinct unnest([code_hash, data_hash, library_hash]) as hash
    from account_states
    where mc_seqno >= $border or (workchain, account, mc_seqno) in (
        select workchain, account, max(mc_seqno)
        from account_states
        where mc_seqno < $border
        group by all
    )
    union
    select unnest(cells.refs) from reached join state_cells as cells on reached.hash = cells.hash
)
select reached.hash, cell, refs
from reached left join state_cells as cells on reached.hash = cells.hash
order by all
"""
"""Cells of all states from a border on."""

_SPANNING = """
select * exclude (mc_seqno, day)
from {table}
where {column} in (
    select hash
    from transaction_traces as t
    where trace_id in (select trace_id from traces where mc_seqno_end >= $border)
)
order by all
"""


@pytest.mark.parametrize("border", BORDERS)
def test_what_later_blocks_build_on_stays(demo_lake: Path, lake: Path, border: int) -> None:
    report = prune_lake(lake, border, SETTINGS)
    assert report.ranges == ((1, border - 1),)
    assert report.bytes_freed > 0 or border == BORDERS[0]  # the rest fits in as much
    assert not verify_lake(lake).damage
    assert open_snapshot(lake).ranges == ((border, LAST),)
    with opened(lake) as now, opened(demo_lake) as before:
        for name in TABLES.keys() - {"interfaces", "action_ranges", "state_cells"}:
            assert list_later(now, name, border) == list_later(before, name, border), name
        for table in ("account_states", *(table.name for table in HISTORY_TABLES)):
            text = f"select * exclude (day) from latest_{table} order by all"  # noqa: S608
            assert now(text) == before(text), table
        cells = now(_TREES, border=border)
        assert cells == before(_TREES, border=border)
        assert all(cell is not None for key, cell, _refs in cells if key is not None)
        for table, column in (("transactions", "hash"), ("messages", "tx_hash")):
            text = _SPANNING.format(table=table, column=column)
            assert now(text, border=border) == before(text, border=border)


def test_rows_of_pruned_blocks_go(lake: Path) -> None:
    border = BORDERS[-1]
    prune_lake(lake, border, SETTINGS)
    with opened(lake) as ask:
        for name in ("blocks", "block_proofs", "queue_sizes", "actions", "action_accounts"):
            text = f"select count(*) from {name} where mc_seqno < $border"  # noqa: S608
            assert ask(text, border=border) == [(0,)]
        once = "select count(*) from transaction_traces where mc_seqno < $border"
        crossing = (
            "select count(*) from transaction_traces join traces using (trace_id)"
            " where mc_seqno < $border and mc_seqno_end >= $border"
        )
        assert ask(once, border=border) == ask(crossing, border=border) != [(0,)]


def test_one_commit_and_files_that_go_with_the_sweep(lake: Path) -> None:
    before = read_state(lake)
    report = prune_lake(lake, 120, SETTINGS)
    after = read_state(lake)
    assert report.commit == after.number == before.number + 1
    assert after.pruned == ((1, 119),)
    old = {file.path for file in before.files} - {file.path for file in after.files}
    assert all((lake / path).exists() for path in old)
    assert open_snapshot(lake, before.number).first_mc_seqno == 1
    size = sum(file.bytes for file in (*before.files, *before.segments))
    assert report.bytes_before - report.bytes_after == size - sum(
        file.bytes for file in (*after.files, *after.segments)
    )
    sweep_orphans(lake, LakeSettings(orphan_grace_s=0))
    assert not any((lake / path).exists() for path in old)
    assert not list_orphans(lake, after)
    assert not verify_lake(lake).damage


def test_pruned_twice_is_pruned_once(demo_lake: Path, lake: Path, tmp_path: Path) -> None:
    once = shutil.copytree(demo_lake, tmp_path / "once")
    prune_lake(once, 137, SETTINGS)
    for border in (12, 111, 137):
        prune_lake(lake, border, SETTINGS)
    assert read_state(lake).pruned == ((1, 136),)
    assert read_all(lake) == read_all(once)
    report = prune_lake(lake, 100, SETTINGS)
    assert (report.commit, report.ranges) == (None, ())


def test_what_is_derived_again_is_the_same(lake: Path) -> None:
    prune_lake(lake, 137, SETTINGS)
    before = read_all(lake)
    for stage in ("traces", "contracts", "actions", "bodies"):
        rebuild(stage, lake, IngestSections())
    assert read_all(lake) == before
    assert not verify_lake(lake).damage


def test_the_index_covers_what_stays(lake: Path) -> None:
    prune_lake(lake, 111, SETTINGS)
    snapshot = open_snapshot(lake)
    index = open_index(snapshot, SETTINGS)
    assert index is not None
    assert not index.segments.stale
    prune_lake(lake, 137, msgspec.structs.replace(SETTINGS, build_index=False))
    assert read_state(lake).segments == ()
    assert open_index(open_snapshot(lake), SETTINGS) is not None
    few = msgspec.structs.replace(SETTINGS, index_memory_rows=10)
    left_to_sql = open_index(open_snapshot(lake), few)
    assert left_to_sql is not None
    assert left_to_sql._segments is None


def test_older_blocks_do_not_come_back_and_an_undo_stops_there(lake: Path) -> None:
    prune_lake(lake, 120, SETTINGS)
    with pytest.raises(RangeOverlap, match="pruned up to 119"):
        commit_rows(lake, 1, 5, network=None)
    with pytest.raises(UndoRefused, match="begins after that"):
        undo_after(
            lake, 119, SETTINGS, max_mc_blocks=500, source={}, reopen=lambda _state, _first: ()
        )


def test_some_block_has_to_stay(lake: Path) -> None:
    for border in (LAST + 1, "2999-01-01"):
        with pytest.raises(PruneRefused, match="no block would be left"):
            prune_lake(lake, border, SETTINGS)
    assert prune_lake(lake, "2001-01-01", SETTINGS).commit is None
    assert prune_lake(lake, LAST, SETTINGS).ranges == ((1, LAST - 1),)
    assert open_snapshot(lake).ranges == ((LAST, LAST),)


def test_days_are_kept_beside_a_writer(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    commit_days(lake)
    settings = LakeSettings(keep_days=3, build_index=False, compact_commits=0)
    maintain_once(LogReader(lake), settings)
    state = read_state(lake)
    assert state.ranges == ((36, 50),)
    assert state.pruned == ((1, 15), (21, 35))
    assert state.known_ranges == ((1, 15), (21, 50))
    maintain_once(LogReader(lake), settings)
    assert read_state(lake).number == state.number
    commit_rows(lake, 51, 55, tables=("blocks",), day="2024-01-10")
    maintain_once(LogReader(lake), settings)
    assert read_state(lake).ranges == ((41, 55),)
    assert not verify_lake(lake).damage
    days = {file.path.split("/")[1] for file in read_state(lake).files}
    assert days == {"day=2024-01-07", *(f"day=2024-01-{day:02}" for day in (8, 9, 10))}


def test_a_day_is_a_border_between_commits(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    commit_days(lake)
    assert prune_lake(lake, "2024-01-04", SETTINGS).before == 21
    assert prune_lake(lake, 23, SETTINGS).before == 23
    assert read_state(lake).pruned == ((1, 15), (21, 22))


def test_commits_meanwhile_are_kept(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote = removal._write_files

    def write_slowly(lake_dir: Path, *rest: Any) -> None:
        wrote(lake_dir, *rest)
        commit_rows(lake_dir, LAST + 1, LAST + 3, tables=("blocks",), network=None)

    monkeypatch.setattr(removal, "_write_files", write_slowly)
    prune_lake(lake, 120, SETTINGS)
    assert read_state(lake).ranges == ((120, LAST + 3),)
    assert not verify_lake(lake).damage


def test_another_change_of_these_files_wins(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote, others = removal._write_files, iter([111])

    def write_slowly(lake_dir: Path, *rest: Any) -> None:
        wrote(lake_dir, *rest)
        for border in others:
            prune_lake(lake_dir, border, SETTINGS)

    monkeypatch.setattr(removal, "_write_files", write_slowly)
    report = prune_lake(lake, 137, SETTINGS)
    assert report.ranges == ((111, 136),)
    assert read_state(lake).ranges == ((137, LAST),)
    assert not verify_lake(lake).damage
    sweep_orphans(lake, LakeSettings(orphan_grace_s=0))
    assert not list_orphans(lake, read_state(lake))


KILLED_BEFORE = (
    *("merge.created", "merge.written:5", "merge.synced", "merge.renamed:20", "prune.written"),
    *("segment.created", "segment.renamed", "prune.indexed"),
    *("log.created", "log.written", "log.synced"),
)
KILLED_AFTER = ("log.linked", "log.folder_synced")


def finish_pruning(lake: Path) -> PruneReport:
    report = prune_lake(lake, 120, SETTINGS)
    sweep_orphans(lake, LakeSettings(orphan_grace_s=0))
    assert not list_orphans(lake, read_state(lake))
    assert not verify_lake(lake).damage
    return report


def test_killed_while_pruning(lake: Path) -> None:
    """Each attempt finds what the one before it left, and the last one prunes."""
    before = read_state(lake)
    for point in KILLED_BEFORE:
        assert run_killed(lambda: prune_lake(lake, 120, SETTINGS), point), point
        assert read_state(lake) == before, point
    assert not verify_lake(lake).damage
    assert finish_pruning(lake).commit is not None


@pytest.mark.parametrize("point", KILLED_AFTER)
def test_killed_after_pruning(lake: Path, point: str) -> None:
    assert run_killed(lambda: prune_lake(lake, 120, SETTINGS), point)
    assert read_state(lake).ranges == ((120, LAST),)
    assert not verify_lake(lake).damage
    assert finish_pruning(lake).commit is None


@pytest.mark.parametrize("table", ["transactions", "state_cells", "account_states", "traces"])
def test_a_damaged_file_stops_it(lake: Path, table: str) -> None:
    before = read_state(lake)
    file = before.by_table[table][0]
    flip_file(lake / file.path)
    with pytest.raises(LakeCorrupt, match=table):
        prune_lake(lake, 120, SETTINGS)
    assert read_state(lake) == before
    assert not list_orphans(lake, before)


def test_a_lake_that_was_never_pruned_is_written_as_before(lake: Path) -> None:
    entries = {name: data for name, data in file_bytes(lake).items() if name.startswith("_log/")}
    assert entries
    assert not any(b'"pruned"' in data or b'"format"' in data for data in entries.values())
    prune_lake(lake, 120, SETTINGS)
    number = read_state(lake).number
    entry = msgspec.json.decode((lake / f"_log/{number}.json").read_bytes())
    assert entry["format"] == 2
    assert read_commit(lake, number)[0].pruned == ((1, 119),)


def test_a_copy_has_what_stays(demo_node: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for first, last in ((1, 40), (41, 80), (81, 130)):
        ingest_all(demo_node, lake, first, last)
    cells = "select hash, mc_seqno from state_cells"
    with opened(lake) as ask:
        before = ask(cells)
    prune_lake(lake, 120, SETTINGS)
    with opened(lake) as ask:
        assert set(ask(cells)) < set(before)  # of cells in several commits, the first one's
    copy_lake(lake, tmp_path / "copy")
    assert read_state(tmp_path / "copy") == read_state(lake)


def cut(rows: pa.Table, sizes: Iterable[int]) -> Iterator[pa.Table]:
    at = 0
    for size in sizes:
        yield rows.slice(at, size)
        at += size


@pytest.mark.parametrize("sizes", [(9,), (1,) * 9, (2, 3, 4), (4, 1, 4), (8, 1)])
def test_ends_of_keys_in_pieces(sizes: tuple[int, ...]) -> None:
    accounts = {"workchain": [0] * 9, "account": [1, 1, 1, 2, 3, 3, 4, 4, 4]}
    rows = pa.table(accounts | {"at": list(range(9))})
    newest = pa.concat_tables(keep_newest(cut(rows, sizes), [*accounts]))
    assert newest["at"].to_pylist() == [2, 3, 5, 8]
    ends = pa.concat_tables(keep_ends(cut(rows, sizes)))
    assert ends["at"].to_pylist() == [0, 2, 3, 4, 5, 6, 8]
    others = keep_newest(
        cut(rows, sizes), [*accounts], lambda some: pa.compute.equal(some["at"], 1)
    )
    assert pa.concat_tables(others)["at"].to_pylist() == [1, 2, 3, 5, 8]


def run(*arguments: str, code: int = 0) -> str:
    result = commands.run("prune", *arguments)
    assert result.exit_code == code, result.output
    return result.output


def test_command(lake: Path) -> None:
    state: LogState = read_state(lake)
    place = ("--lake", str(lake), "--before")
    assert "masterchain blocks 1..119 would be pruned" in run(*place, "120", "--dry-run")
    dry = msgspec.json.decode(run(*place, "120", "--dry-run", "--json"))
    assert (dry["before"], dry["ranges"], dry["commit"]) == (120, [[1, 119]], None)
    assert read_state(lake) == state
    found = msgspec.json.decode(run(*place, "120", "--json"))
    assert found["bytes_freed"] == found["bytes_before"] - found["bytes_after"] > 0
    report = msgspec.convert({k: v for k, v in found.items() if k != "bytes_freed"}, PruneReport)
    assert report.commit == state.number + 1
    assert "bytes freed" in run(*place, "130")
    assert "nothing to prune" in run(*place, "2001-01-01")
    whole = "no block would be left: the lake ends with masterchain block 238"
    assert whole in run(*place, "999", code=1)
    status = commands.run("status", "--lake", lake)
    assert "Pruned 1..129" in status.output


@pytest.mark.parametrize("border", ["yesterday", "0", "-5", "2026-13-01", ""])
def test_command_refuses_an_invalid_border(lake: Path, border: str) -> None:
    assert "neither a day" in run("--lake", str(lake), f"--before={border}", code=2)
