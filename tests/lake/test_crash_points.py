"""Kill -9 at every point of a commit: the lake is in the state before the commit or after it."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pytest

from tests.lake.killed import POINTS, run_killed
from tests.lake.rows import commit_rows, file_bytes
from tonlake.lake.commit import commit
from tonlake.lake.errors import LakeNotFound, RangeOverlap
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSettings

LATER = ("sweep", "delta", "segment", "merge", "compact", "pull", "prune")
COMMIT_POINTS = [point for point in POINTS if not point.startswith(LATER)]

RANGES = [(1, 5), (6, 8), (9, 20), (21, 21)]
FEW_TABLES = ("blocks", "transactions", "state_cells", "transaction_traces", "wallets")

pytestmark = pytest.mark.usefixtures("frequent_checkpoints")


@pytest.fixture(scope="module")
def frequent_checkpoints() -> Iterator[None]:
    with mock.patch.object(commit, "CHECKPOINT_COMMITS", 2):
        yield


def commit_ranges(lake: Path) -> None:
    """Commit those of the ranges that the lake does not have."""
    for first, last in RANGES:
        with suppress(RangeOverlap):
            commit_rows(lake, first, last, rows=3, tables=FEW_TABLES)


def kill(lake: Path, point: str) -> bool:
    """Sweep the lake and commit missing ranges; return whether that was killed at the point."""

    def bring() -> None:
        sweep_orphans(lake, LakeSettings(orphan_grace_s=0))
        commit_ranges(lake)

    return run_killed(bring, point)


@pytest.fixture(scope="module")
def reference(
    frequent_checkpoints: None, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """Every file of an undisturbed lake."""
    del frequent_checkpoints
    lake = tmp_path_factory.mktemp("reference") / "lake"
    commit_ranges(lake)
    return file_bytes(lake)


def check_prefix(lake: Path, reference: dict[str, bytes]) -> int:
    """Check that the lake consists of exactly its first commits, and return their number."""
    try:
        state = read_state(lake)
    except LakeNotFound:
        return 0
    files = file_bytes(lake)
    assert {file.path: files[file.path] for file in state.files} == {
        path: data
        for path, data in reference.items()
        if path.endswith(".parquet")
        and int(Path(path).name.split("-")[1]) <= RANGES[state.number - 1][1]
    }
    assert not verify_lake(lake).damage
    return state.number


def check_recovery(lake: Path, reference: dict[str, bytes]) -> None:
    """Continue after a kill: the lake becomes the reference byte for byte."""
    commit_ranges(lake)
    sweep_orphans(lake, LakeSettings(orphan_grace_s=0))
    made = {path: data for path, data in file_bytes(lake).items() if "checkpoint" not in path}
    assert made == {path: data for path, data in reference.items() if "checkpoint" not in path}


@pytest.mark.parametrize("point", COMMIT_POINTS)
def test_killed_at_a_point(reference: dict[str, bytes], tmp_path: Path, point: str) -> None:
    passes = 1 if point.startswith("checkpoint") else 2
    lake = tmp_path / "lake"
    assert kill(lake, f"{point}:{passes}")
    done = check_prefix(lake, reference)
    after_link = ("log.linked", "log.unlinked", "log.folder_synced", "checkpoint")
    assert done == (2 if point.startswith(after_link) else 1 if "file." not in point else 0)
    check_recovery(lake, reference)


def test_killed_while_sweeping(reference: dict[str, bytes], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    assert kill(lake, "commit.folders_synced:2")
    assert kill(lake, "sweep.removed:3")
    assert check_prefix(lake, reference) == 1
    check_recovery(lake, reference)


def test_reach_kills_only_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *args: killed.append(args))
    from tonlake.lake.log.disk import VARIABLE, reach  # noqa: PLC0415 - under the patch

    monkeypatch.delenv(VARIABLE, raising=False)
    reach("log.linked")
    monkeypatch.setenv(VARIABLE, "test.point:2")
    reach("log.linked")
    reach("test.point")
    assert killed == []
    reach("test.point")
    assert killed == [(os.getpid(), signal.SIGKILL)]
