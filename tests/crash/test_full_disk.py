"""The disk is full at any operation: a clear error, nothing lost, and work resumes with space."""

import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from tests.crash.disk import Disk
from tests.crash.history import History, state_of
from tests.lake.rows import file_bytes
from tonlake.lake.errors import LakeFull
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSettings

STEPS = {"first": 0, "commit": 2, "lookups": 3, "compact": 4, "undo": 7, "import": 10}
"""Number of the step that is tried for each kind of work."""

SHORT_EVERY = 7
"""Of this many operations, the short form tries one."""


pytestmark = pytest.mark.usefixtures("frequent_checkpoints")


@pytest.fixture(scope="module")
def lakes(history: History, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The lake before each of the steps, by number."""
    folder = tmp_path_factory.mktemp("lakes")
    lake, found = folder / "lake", {0: folder / "0"}
    found[0].mkdir()
    with Disk(folder).watch():
        for number, step in enumerate(islice(history.steps(), max(STEPS.values()))):
            step(lake)
            found[number + 1] = folder / str(number + 1)
            shutil.copytree(lake, found[number + 1])
    return found


class Trial:
    """One step that is repeated on copies of the same lake."""

    def __init__(self, history: History, before: Path, number: int, folder: Path) -> None:
        self.step: Callable[[Path], object] = next(islice(history.steps(), number, None))
        self.before, self.lake = before, folder / "lake"
        disk = self.renew()
        with disk.watch():
            self.step(self.lake)
        self.operations = len(disk.operations)
        self.done = live_bytes(self.lake)

    def renew(self, fail_at: int | None = None) -> Disk:
        """Restore the lake before the step, on a disk that is full from an operation on."""
        shutil.rmtree(self.lake, ignore_errors=True)
        shutil.copytree(self.before, self.lake)
        return Disk(self.lake, fail_at=fail_at)

    def fill_up(self, fail_at: int) -> bool:
        """Fill the disk from an operation on, and return whether the step failed."""
        disk, said = self.renew(fail_at), ""
        number = state_of(self.lake).number
        with disk.watch():
            try:
                self.step(self.lake)
            except LakeFull as error:
                said = str(error)
            assert "free some space" in said or not said
            check_sound(self.lake, number)
            disk.free()
            self.step(self.lake)
            sweep_orphans(self.lake, LakeSettings(orphan_grace_s=0))
        assert live_bytes(self.lake) == self.done
        return said != ""


def live_bytes(lake: Path) -> dict[str, bytes]:
    """Return the bytes of all live files."""
    state, found = state_of(lake), file_bytes(lake)
    return {file.stored: found[file.stored] for file in (*state.files, *state.segments)}


def check_sound(lake: Path, least: int) -> None:
    """No commit is lost, and nothing is damaged."""
    number = state_of(lake).number
    assert number >= least
    assert number == 0 or verify_lake(lake).damage == []


@pytest.fixture(params=STEPS)
def trial(
    request: pytest.FixtureRequest, history: History, lakes: dict[int, Path], tmp_path: Path
) -> Trial:
    number = STEPS[request.param]
    return Trial(history, lakes[number], number, tmp_path)


@pytest.mark.parametrize("every", [SHORT_EVERY, pytest.param(1, marks=pytest.mark.long)])
def test_full_at_an_operation(trial: Trial, every: int) -> None:
    failures = [trial.fill_up(at) for at in range(0, trial.operations, every)]
    assert any(failures)
