"""Ingest killed with SIGKILL: reopening shows the committed prefix, and ingest resumes."""

import random
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from tests.ingest.dataset.generate import TABLES
from tests.ingest.dataset.test_pipeline import cut_at_midnight, write_changed
from tests.lake.killed import POINTS, Victim
from tonlake.lake.errors import LakeNotFound
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import CONTRACT_TABLES

RANDOM_KILLS, LONG_KILLS, DAY_KILLS = 3, 500, 50
SEED = 20261121
AMONG_CONTRACTS = ("file.created:14", "file.renamed:16", "file.renamed:34", "file.written:31")
"""Moments at which the first two commits of a lake, and a later one, write files of contracts."""
CONTRACTS = frozenset(table.name for table in CONTRACT_TABLES)
OTHERS = ("segment.", "merge.", "compact.", "prune.", "pull.", "sweep.")
"""Points that ingest does not pass."""
SECOND = ("commit.", "log.")
"""Points that the second commit of an ingest is killed at, when it has already made one."""
INGEST_POINTS = [point for point in POINTS if not point.startswith(OTHERS)]


@pytest.fixture(scope="module")
def victim(demo_node: Path) -> Iterator[Victim]:
    with closing(Victim("tests.crash.victim", demo_node)) as process:
        yield process


def list_live(lake: Path) -> dict[str, str]:
    """Every live file of the newest snapshot with its digest."""
    snapshot = open_snapshot(lake)
    return {file.path: file.sha256 for files in snapshot.files.values() for file in files}


@pytest.fixture(scope="module")
def reference(victim: Victim, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of a lake whose ingest was undisturbed."""
    lake = tmp_path_factory.mktemp("reference") / "lake"
    assert victim.order(lake) == "ended"
    return list_live(lake)


def drop_open(files: dict[str, str], last: int = sys.maxsize) -> dict[str, str]:
    """The files up to a block; what is open there is in a file that later commits replace."""
    kept = {path: Path(path).name for path in files if "/open-" not in path}
    return {path: files[path] for path, name in kept.items() if int(name.split("-")[1]) <= last}


def check_prefix(lake: Path, reference: dict[str, str]) -> None:
    """The lake is empty, or holds exactly a prefix of the reference."""
    try:
        snapshot = open_snapshot(lake)
    except LakeNotFound:
        return
    assert len(snapshot.ranges) == 1
    assert snapshot.ranges[0][0] == 1
    assert drop_open(list_live(lake)) == drop_open(reference, snapshot.last_mc_seqno)
    assert not verify_lake(lake).damage


def test_killed_at_each_commit_point(
    victim: Victim, reference: dict[str, str], tmp_path: Path
) -> None:
    """Each ingest continues what the one before it left, and is killed at the next point."""
    lakes = (tmp_path / f"lake-{number}" for number in count())
    lake, finished = next(lakes), 0
    for point in INGEST_POINTS:
        crash_at = f"{point}:{2 if point.startswith(SECOND) else 1}"
        if victim.order(lake, crash_at) != "killed":
            assert list_live(lake) == reference  # too little was left to pass the point
            lake, finished = next(lakes), finished + 1
            assert victim.order(lake, crash_at) == "killed", point
        check_prefix(lake, reference)
    assert victim.order(lake) == "ended"
    assert list_live(lake) == reference
    assert finished < len(INGEST_POINTS) // 2


def test_killed_among_the_files_of_contracts(
    victim: Victim, reference: dict[str, str], tmp_path: Path
) -> None:
    assert any(path.startswith("wallets/") for path in reference)
    lake = tmp_path / "lake"
    for moment in AMONG_CONTRACTS:
        assert victim.order(lake, moment) == "killed"
        check_prefix(lake, reference)
        assert {path.parent.name for path in lake.glob("*/day=*")} & CONTRACTS, moment
    assert victim.order(lake) == "ended"
    assert list_live(lake) == reference


@pytest.mark.usefixtures("tvm")
def test_killed_while_the_machine_runs(
    demo_node: Path, tmp_path: Path, reference: dict[str, str]
) -> None:
    """The TVM's processes end with the killed one, and the next one starts its own."""
    victim, lake = Victim("tests.crash.victim", demo_node, "tvm"), tmp_path / "lake"
    with closing(victim):
        assert victim.order(lake, "file.renamed:34") == "killed"
        check_prefix(lake, reference)
        assert victim.order(lake) == "ended"
    assert list_live(lake) == reference


def kill_at_random(
    victim: Victim,
    reference: dict[str, str],
    folder: Path,
    kills: int,
    most_ms: int = 300,
) -> None:
    """Kill an ingest again and again, each time further on, and compare what is left."""
    rng = random.Random(SEED)  # noqa: S311 - a repeatable choice of moments
    killed = 0
    lake_number = 0
    lake = folder / "lake-0"
    while killed < kills:
        ending = victim.order(lake, "-", rng.uniform(20, most_ms))
        assert ending in {"killed", "ended"}
        killed += ending == "killed"
        check_prefix(lake, reference)
        if ending == "ended":
            assert list_live(lake) == reference
            lake_number += 1
            lake = folder / f"lake-{lake_number}"
    assert victim.order(lake) == "ended"
    assert list_live(lake) == reference


@pytest.mark.parametrize("kills", [RANDOM_KILLS, pytest.param(LONG_KILLS, marks=pytest.mark.long)])
def test_killed_at_random_times(
    victim: Victim, reference: dict[str, str], tmp_path: Path, kills: int
) -> None:
    kill_at_random(victim, reference, tmp_path, kills)


@pytest.mark.long
def test_days_of_a_data_set_killed_many_times(demo_lake: Path, tmp_path: Path) -> None:
    rows = {table: list_rows(demo_lake) for table, (list_rows, _) in TABLES.items()}
    dataset = write_changed(rows, tmp_path / "dataset", cut_at_midnight)
    with closing(Victim("tests.crash.victim", dataset, "days")) as victim:
        assert victim.order(tmp_path / "undisturbed") == "ended"
        reference = list_live(tmp_path / "undisturbed")
        kill_at_random(victim, reference, tmp_path, DAY_KILLS, most_ms=4000)
