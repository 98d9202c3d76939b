"""Any process of an ingest killed with SIGKILL: coordinator, worker, or a worker's TVM.

The commits are a prefix of an undisturbed lake, no process is left behind, and rerunning the
command ends with the same files.
"""

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.crash.test_ingest_kills import list_live
from tests.ingest.simulator.service import is_alive, list_family
from tests.patience import wait_for
from tonlake.lake.errors import LakeNotFound
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.maintenance.verify import verify_lake

KILLS = 200
WORKERS = 3
LATEST_S = 4.0
SETTINGS = {
    "TONLAKE_INGEST_MC_BLOCKS_PER_COMMIT": "40",
    "TONLAKE_INGEST_MC_BLOCKS_PER_CHUNK": "10",
}


def begin(node: Path, lake: Path, workers: int, *rest: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tonlake.api.command.frozen", "ingest"]
    return subprocess.Popen(
        [*command, "--node", str(node), "--lake", str(lake), "--workers", str(workers), *rest],
        env=os.environ | SETTINGS,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(node: Path, lake: Path, workers: int, *rest: str) -> None:
    process = begin(node, lake, workers, *rest)
    errors = process.communicate()[1]
    assert process.returncode == 0, errors.decode()


class Undisturbed:
    """The files of lakes that end with a masterchain block, created on demand by one process."""

    def __init__(self, node: Path, folder: Path) -> None:
        self._node, self._folder = node, folder
        self._files: dict[int | None, dict[str, str]] = {}

    def list_files(self, last: int | None = None) -> dict[str, str]:
        if last not in self._files:
            lake = self._folder / f"undisturbed-{last}"
            finish(self._node, lake, 1, *(() if last is None else ("--range", f"1:{last}")))
            self._files[last] = list_live(lake)
        return self._files[last]

    def check_prefix(self, lake: Path) -> None:
        """A killed lake is empty, or equals an undisturbed one at its last block."""
        try:
            [(first, last)] = open_snapshot(lake).ranges
        except LakeNotFound:
            return
        assert first == 1
        assert list_live(lake) == self.list_files(last)
        assert not verify_lake(lake).damage


@pytest.mark.long
def test_any_process_may_be_killed(demo_node: Path, tmp_path: Path) -> None:
    undisturbed = Undisturbed(demo_node, tmp_path)
    reference = undisturbed.list_files()
    rng = random.Random(20261123)  # noqa: S311 - a repeatable choice of moments
    killed = lakes = 0
    lake = tmp_path / "lake-0"
    while killed < KILLS:
        process = begin(demo_node, lake, WORKERS)
        with suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0.3, LATEST_S))
        tree = [each.pid for each in list_family(process.pid)]
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(rng.choice(tree), signal.SIGKILL)
                killed += 1
        errors = process.communicate(timeout=60)[1].decode()
        if process.returncode not in {0, -signal.SIGKILL}:
            assert "ended with signal 9" in errors or "TVM" in errors, errors
        wait_for(lambda tree=tree: not any(map(is_alive, tree)), 20)  # type: ignore[misc]
        undisturbed.check_prefix(lake)
        if process.returncode == 0:
            assert list_live(lake) == reference
            lakes += 1
            lake = tmp_path / f"lake-{lakes}"
    finish(demo_node, lake, WORKERS)
    assert list_live(lake) == reference
