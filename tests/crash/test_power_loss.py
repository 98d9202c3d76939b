"""The power fails after any operation on any file: promised data is there, and work resumes."""

import shutil
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest

from tests.crash.disk import Died, Disk, Operation
from tests.crash.history import History, ranges_of, state_of
from tests.crash.power import WORST, Medium, Shelf, Tree, list_losses
from tests.lake.rows import file_bytes
from tonlake.lake.commit import commit
from tonlake.lake.log.snapshot import LEASE_FILE
from tonlake.lake.log.state import LOG_FOLDER
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSettings

GOES_ON_EVERY = 60
"""How many of the states are taken up again until the history ends: one in this many."""

SHORT_EVERY, KILL_EVERY = 7, 150
"""Of this many operations, the short forms try one; the long ones try all."""


pytestmark = pytest.mark.usefixtures("frequent_checkpoints")


class Recorded:
    """The history of a lake: its operations, and every entry that its log ever had."""

    def __init__(self, history: History, folder: Path) -> None:
        self.lake = folder / "lake"
        disk = Disk(folder)
        with disk.watch():
            for step in history.steps():
                step(self.lake)
                disk.mark(str(state_of(self.lake).number))
        self.operations = disk.operations
        self.entries = read_entries(self.lake)


def read_entries(lake: Path) -> dict[str, bytes]:
    """Return the entries of a log, which are never changed, by name."""
    entries = (path for path in (lake / LOG_FOLDER).glob("*.json") if path.stem.isdigit())
    return {path.name: path.read_bytes() for path in entries}


@pytest.fixture(scope="module")
def recorded(history: History, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(history, tmp_path_factory.mktemp("recorded"))


def replay(operations: Iterable[Operation]) -> Medium:
    """Return the disk after all operations."""
    medium = Medium()
    for operation in operations:
        medium.do(operation)
    return medium


def files_of(tree: Tree) -> Tree:
    """Return the files of a tree without its folders."""
    return {path: data for path, data in tree.items() if not path.endswith("/")}


def check_promise(lake: Path, promised: int, entries: dict[str, bytes]) -> None:
    """The lake is exactly its first commits, including the promised ones."""
    if not lake.exists():
        assert promised == 0
        return
    number = state_of(lake).number
    assert number >= promised
    found = read_entries(lake)
    assert {f"{at}.json" for at in range(1, number + 1)} <= found.keys()
    assert all(entries[f"{at}.json"] == found[f"{at}.json"] for at in range(1, number + 1))
    if number:
        assert verify_lake(lake).damage == []


def test_operations_are_complete(recorded: Recorded) -> None:
    kept = replay(recorded.operations).lose(WORST._replace(names="none", bytes="kept"))
    found = file_bytes(recorded.lake.parent)
    del found[f"lake/{LEASE_FILE}"]  # empty, and made by any reader
    assert files_of(kept) == found


def test_the_end_is_durable(recorded: Recorded) -> None:
    """Whatever was not synced at the end of the last step is irrelevant."""
    kept = files_of(replay(recorded.operations).lose(WORST))
    live = {f"lake/{file.stored}" for file in state_of(recorded.lake).files}
    assert live <= kept.keys()


@pytest.mark.parametrize(
    ("dice", "every"), [(1, SHORT_EVERY), pytest.param(20, 1, marks=pytest.mark.long)]
)
def test_power_is_lost_after_any_operation(
    recorded: Recorded, history: History, tmp_path: Path, dice: int, every: int
) -> None:
    """Open every lake that a loss of power can leave."""
    shelf, tried = Shelf(tmp_path), 0
    for mark, tree in list_losses(recorded.operations, dice, every=every):
        tried += 1
        shelf.lay_out(tree)
        check_promise(shelf.target / "lake", int(mark or 0), recorded.entries)
        if tried % GOES_ON_EVERY == 0:
            go_on(history, shelf.target / "lake")
    assert tried > len(recorded.operations) // every


def go_on(history: History, lake: Path) -> None:
    """Finish the history from the remaining state; it ends as always."""
    copy = lake.parent.with_name("copy")  # what is laid out are links to bytes that others share
    if lake.exists():
        shutil.copytree(lake, copy)
    with Disk(copy).watch():  # which syncs nothing: no power is lost here
        history.finish(copy)
    assert ranges_of(copy) == ((1, 10),)
    report = verify_lake(copy)
    assert (report.damage, report.orphans) == ([], [])
    shutil.rmtree(copy)


def killed_and_ended(history: History, folder: Path, killed_at: int) -> list[Operation]:
    """Return the operations of a history that was killed, restarted and finished."""
    lake = folder / "lake"
    first = Disk(folder, fail_at=killed_at, death=True)
    with first.watch(), suppress(Died):
        for step in history.steps():
            step(lake)
    second = Disk(folder)
    with second.watch():
        history.finish(lake)
        second.mark(str(state_of(lake).number))
    return first.operations + second.operations


def power_after_a_kill(history: History, folder: Path, killed_at: int) -> None:
    """Kill, restart, finish, and lose the power: data not synced before the kill is lost."""
    folder.mkdir()
    medium = replay(killed_and_ended(history, folder, killed_at))
    shelf = Shelf(folder / "shelf")
    shelf.lay_out(medium.lose(WORST))
    check_promise(shelf.target / "lake", int(medium.marks[-1]), read_entries(folder / "lake"))
    shutil.rmtree(folder)


@pytest.mark.parametrize("every", [KILL_EVERY, pytest.param(1, marks=pytest.mark.long)])
def test_power_is_lost_after_a_kill(
    history: History, recorded: Recorded, tmp_path: Path, every: int
) -> None:
    operations = sum(operation.kind != "mark" for operation in recorded.operations)
    for killed_at in range(0, operations, every):
        power_after_a_kill(history, tmp_path / str(killed_at), killed_at)


def test_what_an_entry_replaces_goes_when_the_entry_is_durable(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction dies before it syncs its entry; the next writer sweeps, and the power goes."""
    steps, lake = history.steps(), tmp_path / "lake"

    def die(_folder: Path) -> None:
        raise Died

    disk = Disk(tmp_path)
    with disk.watch():
        for step in islice(steps, 4):
            step(lake)
        monkeypatch.setattr(commit, "sync_folder", die)
        with pytest.raises(Died):
            next(steps)(lake)
        assert state_of(lake).number == 5
        dead = len(disk.operations)
        assert sweep_orphans(lake, LakeSettings(orphan_grace_s=0))
    shelf, entries = Shelf(tmp_path / "shelf"), read_entries(lake)
    for _mark, tree in list_losses(disk.operations, 8, begin=dead):
        shelf.lay_out(tree)
        check_promise(shelf.target / "lake", 4, entries)
