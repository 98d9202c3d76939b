"""Segments on disk: complete or absent, detected when damaged, and never in a reader's way."""

import io
import random
import shutil
from pathlib import Path
from unittest import mock

import msgspec
import pytest
from rich.console import Console

from tests.damage import flip_any
from tests.lake.chain import Chain, commit_chain
from tests.lake.killed import run_killed
from tests.lake.rows import file_bytes
from tonlake.lake.command.status import read_status, render_status
from tonlake.lake.commit.rewrite import commit_maintenance
from tonlake.lake.index.builder import rebuild
from tonlake.lake.index.builder.plan import range_of
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.index.index import open_segments
from tonlake.lake.index.segment.file import SEGMENT_FORMAT, SegmentFile
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import SEGMENT_FOLDER, read_commit, read_state
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSettings

NO_MEMORY = LakeSettings(index_memory_rows=0)
SETTINGS = LakeSettings()


@pytest.fixture(scope="module")
def without_segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of three commits without a segment, to be copied."""
    lake, chain = tmp_path_factory.mktemp("chained") / "lake", Chain(3)
    for at in (1, 4, 7):
        commit_chain(lake, chain, at, at + 2)
    return lake


@pytest.fixture
def chained(without_segment: Path, tmp_path: Path) -> Path:
    """A lake of three commits without a segment."""
    return shutil.copytree(without_segment, tmp_path / "lake")


def ranges_of(lake: Path) -> list[tuple[int, int]]:
    return sorted(range_of(segment) for segment in read_state(lake).segments)


def test_a_rebuild_covers_all_blocks_once_and_the_same_rows_make_the_same_segment(
    chained: Path,
) -> None:
    commit = rebuild_index(chained)
    assert commit is not None
    assert not commit.has_blocks
    assert ranges_of(chained) == [(1, 9)]
    assert rebuild_index(chained) is None
    report, before = verify_lake(chained), file_bytes(chained / SEGMENT_FOLDER)
    assert (report.damage, report.orphans) == ([], [])
    rebuild_index(chained, everything=True)
    assert file_bytes(chained / SEGMENT_FOLDER) == before


def test_a_segment_of_another_version_is_not_read_but_rebuilt(chained: Path) -> None:
    rebuild_index(chained)
    state = read_state(chained)
    (segment,) = state.segments
    foreign = msgspec.structs.replace(segment, schema_version=SEGMENT_FORMAT + 1)
    commit_maintenance(chained, state, segments=(foreign,))
    snapshot = open_snapshot(chained)
    assert open_segments(snapshot, NO_MEMORY) is None
    in_memory = open_segments(snapshot, SETTINGS)
    assert in_memory is not None
    assert len(in_memory.segments) == 3  # one of each commit, in memory
    commit, _ = read_commit(chained, snapshot.number)
    status = read_status(snapshot, commit)
    assert (status.lookups.segments, status.lookups.unreadable) == (0, 1)
    assert status.lookups.missing == ((1, 9),)
    assert status.lookups.rows_missing == segment.rows
    console = Console(record=True, width=200, file=io.StringIO())
    render_status(status, console)
    assert "1 segment in the format of another version" in console.export_text()
    rebuild_index(chained)
    assert read_state(chained).segments == (segment,)
    assert open_segments(open_snapshot(chained), NO_MEMORY) is not None


def test_small_runs_are_joined_and_large_ones_left_alone(tmp_path: Path) -> None:
    lake, chain = tmp_path / "lake", Chain(4)
    commit_chain(lake, chain, 1, 40)
    rebuild_index(lake)
    large = read_state(lake).segments
    for at in (41, 42, 43):
        commit_chain(lake, chain, at, at)
        rebuild_index(lake)
    assert large[0] in read_state(lake).segments
    assert len(read_state(lake).segments) <= 3
    assert ranges_of(lake)[-1][1] == 43


def test_a_segment_never_spans_a_hole(tmp_path: Path) -> None:
    lake, chain = tmp_path / "lake", Chain(5)
    commit_chain(lake, chain, 1, 3)
    commit_chain(lake, chain, 6, 8)
    rebuild_index(lake)
    assert ranges_of(lake) == [(1, 3), (6, 8)]
    commit_chain(lake, chain, 4, 5)
    rebuild_index(lake)
    assert ranges_of(lake) == [(1, 3), (4, 5), (6, 8)]
    rebuild_index(lake, everything=True)
    assert ranges_of(lake) == [(1, 8)]


@pytest.mark.parametrize("seed", range(20))
def test_a_flipped_bit_is_found_and_never_answered_from(chained: Path, seed: int) -> None:
    rebuild_index(chained)
    path = chained / read_state(chained).segments[0].path
    path.write_bytes(flip_any(path.read_bytes(), random.Random(seed)))  # noqa: S311 - repeatable
    assert [damage.file for damage in verify_lake(chained).damage] == [
        f"{SEGMENT_FOLDER}/{path.name}"
    ]
    snapshot = open_snapshot(chained)
    assert snapshot.segments == ()
    assert open_segments(snapshot, NO_MEMORY) is None
    assert open_segments(snapshot, SETTINGS) is not None
    rebuild_index(chained)
    assert verify_lake(chained).damage == []
    assert open_segments(open_snapshot(chained), NO_MEMORY) is not None


@pytest.mark.parametrize(
    "point",
    [
        *("segment.created", "segment.written", "segment.synced", "segment.renamed"),
        *("log.created", "log.written", "log.synced", "log.linked", "log.unlinked"),
        "log.folder_synced",
    ],
)
def test_a_rebuild_that_is_killed_leaves_all_or_nothing(chained: Path, point: str) -> None:
    assert run_killed(lambda: rebuild_index(chained), point)
    assert verify_lake(chained).damage == []
    linked = point in {"log.linked", "log.unlinked", "log.folder_synced"}
    assert bool(read_state(chained).segments) == linked
    sweep_orphans(chained, LakeSettings(orphan_grace_s=0))
    rebuild_index(chained)
    report = verify_lake(chained)
    assert (report.damage, report.orphans) == ([], [])
    assert ranges_of(chained) == [(1, 9)]


def test_a_reader_of_an_old_segment_goes_on_when_it_is_replaced_and_swept(chained: Path) -> None:
    rebuild_index(chained)
    snapshot = open_snapshot(chained)
    pinned = open_segments(snapshot, SETTINGS)
    assert pinned is not None
    tx_hash = pinned.segments[0].transactions.hash_of(0)
    commit_chain(chained, Chain(9), 10, 14)
    rebuild_index(chained, everything=True)
    old = chained / snapshot.segments[0].path
    assert sweep_orphans(chained, LakeSettings(orphan_grace_s=3600)) == []
    assert old.exists()
    assert sweep_orphans(chained, LakeSettings(orphan_grace_s=0)) == []
    assert snapshot.lease is not None
    snapshot.lease.close()
    assert old in sweep_orphans(chained, LakeSettings(orphan_grace_s=0))
    hit = pinned.find_transaction(tx_hash)
    assert hit is not None
    assert pinned.read_records([hit])[0].row.hash == tx_hash


def test_commits_during_a_rebuild_are_kept(chained: Path) -> None:
    chain = Chain(8)

    def commit_more(_folder: Path) -> None:
        for at in (10, 11):
            commit_chain(chained, chain, at, at)

    with mock.patch.object(rebuild, "sync_folder", commit_more):
        rebuild_index(chained)
    assert open_snapshot(chained).last_mc_seqno == 11
    assert ranges_of(chained) == [(1, 9)]
    lookups = open_segments(open_snapshot(chained), SETTINGS)
    assert lookups is not None
    assert lookups.segments[-1].last_mc_seqno == 11


@pytest.mark.parametrize("cut", [0, 1, 8, 100])
def test_bytes_that_are_no_segment_are_refused(chained: Path, cut: int) -> None:
    rebuild_index(chained)
    data = (chained / read_state(chained).segments[0].path).read_bytes()
    with pytest.raises(Exception, match="not an index segment"):
        SegmentFile(data[: len(data) - 1 - cut], "x")
