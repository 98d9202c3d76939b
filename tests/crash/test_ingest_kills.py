"""Ingest killed with SIGKILL: reopening shows the committed prefix, and ingest resumes."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tonlake.lake.errors import LakeNotFound
from tonlake.lake.log.disk import POINTS
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema.contract import CONTRACT_TABLES

ROOT = Path(__file__).resolve().parents[2]
RANDOM_KILLS, LONG_KILLS = 25, 500
SEED = 20261121
AMONG_CONTRACTS = ("file.created:14", "file.written:31", "file.renamed:16", "file.renamed:34")
"""Moments at which the first and the second commit write files of contracts."""
CONTRACTS = frozenset(table.name for table in CONTRACT_TABLES)
LATER = ("segment.", "merge.", "compact.", "prune.", "pull.")
"""Points that ingest does not pass."""


class Victim:
    """The forking process of ``victim.py``, controlled by lines on its stdin."""

    def __init__(self, node: Path, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.victim", str(node), *options],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ingest(self, lake: Path, *, crash_at: str = "-", delay_ms: float = 0) -> str:
        """Run one ingest and return how it ended: killed or ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{lake} {crash_at} {delay_ms}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        """Let the process end."""
        self._process.communicate()


@pytest.fixture(scope="module")
def victim(demo_node: Path) -> Iterator[Victim]:
    process = Victim(demo_node)
    yield process
    process.close()


def list_live(lake: Path) -> dict[str, str]:
    """Every live file of the newest snapshot with its digest."""
    snapshot = open_snapshot(lake)
    return {file.path: file.sha256 for files in snapshot.files.values() for file in files}


@pytest.fixture(scope="module")
def reference(victim: Victim, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of a lake whose ingest was undisturbed."""
    lake = tmp_path_factory.mktemp("reference") / "lake"
    assert victim.ingest(lake) == "ended"
    return list_live(lake)


def check_prefix(lake: Path, reference: dict[str, str]) -> int:
    """The lake is empty, or holds exactly a prefix of the reference; returns its last seqno."""
    try:
        snapshot = open_snapshot(lake)
    except LakeNotFound:
        return 0
    assert len(snapshot.ranges) == 1
    assert snapshot.ranges[0][0] == 1
    files = list_live(lake)
    assert files.items() <= reference.items()
    last = snapshot.last_mc_seqno
    expected = {path for path in reference if int(Path(path).name.split("-")[1]) <= last}
    assert set(files) == expected
    assert not verify_lake(lake).damage
    return last


@pytest.mark.parametrize("point", [point for point in POINTS if not point.startswith(LATER)])
@pytest.mark.parametrize("passes", [1, 2])
def test_killed_at_a_commit_point(
    victim: Victim, reference: dict[str, str], tmp_path: Path, point: str, passes: int
) -> None:
    lake = tmp_path / "lake"
    ending = victim.ingest(lake, crash_at=f"{point}:{passes}")
    if point == "sweep.removed":
        assert ending == "ended", "an undisturbed run has no orphans to remove"
    else:
        assert ending == "killed"
    check_prefix(lake, reference)
    assert victim.ingest(lake) == "ended"
    assert list_live(lake) == reference


@pytest.mark.parametrize("moment", AMONG_CONTRACTS)
def test_killed_among_the_files_of_contracts(
    victim: Victim, reference: dict[str, str], tmp_path: Path, moment: str
) -> None:
    assert any(path.startswith("wallets/") for path in reference)
    lake = tmp_path / "lake"
    assert victim.ingest(lake, crash_at=moment) == "killed"
    check_prefix(lake, reference)
    assert {path.parent.name for path in lake.glob("*/day=*")} & CONTRACTS
    assert victim.ingest(lake) == "ended"
    assert list_live(lake) == reference


@pytest.mark.usefixtures("tvm")
def test_killed_while_the_machine_runs(
    demo_node: Path, tmp_path: Path, reference: dict[str, str]
) -> None:
    """The TVM's processes end with the killed one, and the next one starts its own."""
    victim, lake = Victim(demo_node, "tvm"), tmp_path / "lake"
    with closing(victim):
        assert victim.ingest(lake, crash_at="file.renamed:34") == "killed"
        check_prefix(lake, reference)
        assert victim.ingest(lake) == "ended"
    assert list_live(lake) == reference


def kill_at_random(
    victim: Victim, reference: dict[str, str], folder: Path, kills: int, seed: int
) -> None:
    """Kill an ingest again and again, each time further on, and compare what is left."""
    rng = random.Random(seed)  # noqa: S311 - a repeatable choice of moments
    killed = 0
    lake_number = 0
    lake = folder / "lake-0"
    while killed < kills:
        ending = victim.ingest(lake, delay_ms=rng.uniform(20, 300))
        assert ending in {"killed", "ended"}
        killed += ending == "killed"
        check_prefix(lake, reference)
        if ending == "ended":
            assert list_live(lake) == reference
            lake_number += 1
            lake = folder / f"lake-{lake_number}"
    assert victim.ingest(lake) == "ended"
    assert list_live(lake) == reference


def test_killed_at_random_times(victim: Victim, reference: dict[str, str], tmp_path: Path) -> None:
    kill_at_random(victim, reference, tmp_path, RANDOM_KILLS, SEED)


@pytest.mark.long
def test_killed_many_times(victim: Victim, reference: dict[str, str], tmp_path: Path) -> None:
    kill_at_random(victim, reference, tmp_path, LONG_KILLS, SEED + 1)
