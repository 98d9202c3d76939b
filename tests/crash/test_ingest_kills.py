"""Ingest killed with SIGKILL: reopening shows the committed prefix, and ingest resumes."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from tonlake.lake.errors import LakeNotFound
from tonlake.lake.log.disk import POINTS
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema.contract import CONTRACT_TABLES

ROOT = Path(__file__).resolve().parents[2]
RANDOM_KILLS, LONG_KILLS = 12, 500
SEED = 20261121
AMONG_CONTRACTS = ("file.created:14", "file.renamed:16", "file.renamed:34", "file.written:31")
"""Moments at which the first two commits of a lake, and a later one, write files of contracts."""
CONTRACTS = frozenset(table.name for table in CONTRACT_TABLES)
OTHERS = ("segment.", "merge.", "compact.", "prune.", "pull.", "sweep.")
"""Points that ingest does not pass."""
SECOND = ("commit.", "log.")
"""Points that the second commit of an ingest is killed at, when it has already made one."""
INGEST_POINTS = [point for point in POINTS if not point.startswith(OTHERS)]


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


def test_killed_at_each_commit_point(
    victim: Victim, reference: dict[str, str], tmp_path: Path
) -> None:
    """Each ingest continues what the one before it left, and is killed at the next point."""
    lakes = (tmp_path / f"lake-{number}" for number in count())
    lake, finished = next(lakes), 0
    for point in INGEST_POINTS:
        crash_at = f"{point}:{2 if point.startswith(SECOND) else 1}"
        if victim.ingest(lake, crash_at=crash_at) != "killed":
            assert list_live(lake) == reference  # too little was left to pass the point
            lake, finished = next(lakes), finished + 1
            assert victim.ingest(lake, crash_at=crash_at) == "killed", point
        check_prefix(lake, reference)
    assert victim.ingest(lake) == "ended"
    assert list_live(lake) == reference
    assert finished < len(INGEST_POINTS) // 2


def test_killed_among_the_files_of_contracts(
    victim: Victim, reference: dict[str, str], tmp_path: Path
) -> None:
    assert any(path.startswith("wallets/") for path in reference)
    lake = tmp_path / "lake"
    for moment in AMONG_CONTRACTS:
        assert victim.ingest(lake, crash_at=moment) == "killed"
        check_prefix(lake, reference)
        assert {path.parent.name for path in lake.glob("*/day=*")} & CONTRACTS, moment
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
