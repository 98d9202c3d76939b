"""A pulled lake equals its source, whatever happens, or the error names the file."""

import hashlib
import random
import shutil
import threading
import time
from pathlib import Path
from typing import Any, Self
from unittest import mock

import msgspec
import pytest

from tests.crash.history import History
from tests.lake.killed import KILLED, POINTS, run_child, run_killed
from tests.lake.rows import commit_days, commit_rows, file_bytes
from tests.lake.web import plain_server, serving_folder
from tonlake.lake.commit import commit
from tonlake.lake.copy import pull as pulling
from tonlake.lake.copy import source as reading
from tonlake.lake.copy.follow import PullFollower
from tonlake.lake.copy.pull import copy_file, copy_lake, open_pull
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import (
    CommitConflict,
    CopyRefused,
    LakeFull,
    LakeTooNew,
    SourceRefused,
    StorageError,
    TableLacking,
)
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.index.index import open_index
from tonlake.lake.log.disk import LOCK_FILE, hold_lock
from tonlake.lake.log.envelope import encode_entry
from tonlake.lake.log.following import read_following
from tonlake.lake.log.snapshot import SELECTION_FILE, Selection, open_snapshot, read_selection
from tonlake.lake.log.state import LogReader, NetworkId, list_log, read_commit, read_state
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.removal import prune_lake
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSections, LakeSettings
from tonlake.lake.storage import storage

SETTINGS = LakeSettings()
KILLS, MANY_KILLS = 5, 100
FEW = ("blocks", "messages", "transactions")
SECOND_DAY = Selection("2024-01-17", "2024-01-17")
"""The second of the three days that the lake of these tests has."""


def live_files(lake: Path) -> dict[str, bytes]:
    """Return the log's entries, and the files of the newest commit, by path."""
    state = read_state(lake)
    paths = [file.stored for file in (*state.files, *state.segments)]
    paths += [f"_log/{number}.json" for number in range(1, state.number + 1)]
    return {path: (lake / path).read_bytes() for path in paths}


def check_same(source: Path, copy: Path) -> None:
    assert read_state(copy) == read_state(source)
    assert live_files(copy) == live_files(source)
    assert verify_lake(copy).damage == []
    assert [path.name for path in (copy / "_pull").iterdir()] == ["lock"]


def refuse(words: str, *inputs: Any, error: type[Exception] = SourceRefused) -> None:
    """Check that a copy is refused, with these words."""
    with pytest.raises(error, match=words):
        copy_lake(*inputs)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The folder of a copy, which does not exist yet."""
    return tmp_path / "copy"


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a history: merged files, an index, blocks undone."""
    folder = tmp_path_factory.mktemp("grown")
    history = History()
    for step in history.steps():
        step(folder / "lake")
    return folder / "lake"


def test_a_folder_and_web_servers(grown: Path, tmp_path: Path) -> None:
    report = copy_lake(grown, tmp_path / "one")
    state = read_state(grown)
    assert (report.snapshot, report.commits, report.ranges) == (
        state.number,
        state.number,
        state.ranges,
    )
    assert report.files == len(state.files) + len(state.segments)
    assert report.rows == sum(file.rows for file in state.files)
    check_same(grown, tmp_path / "one")
    with plain_server(grown) as url:
        assert copy_lake(url, tmp_path / "two") == report
        assert copy_lake(f"{url}/", tmp_path / "two").files == 0
    check_same(grown, tmp_path / "two")
    assert copy_lake(tmp_path / "two", tmp_path / "three") == report
    check_same(grown, tmp_path / "three")


@pytest.mark.parametrize("selection", [Selection(), Selection(tables=FEW), Selection("2024-01-02")])
def test_every_step_of_a_history(tmp_path: Path, selection: Selection) -> None:
    source, copy = tmp_path / "lake", tmp_path / "copy"
    for step in History().steps():
        step(source)
        whole = read_state(source)
        kept = tuple(file for file in whole.files if selection.has(file.path))
        if not any(file.table == "blocks" for file in kept):
            refuse("no blocks of days 2024-01-02", source, copy, selection, error=CopyRefused)
            continue
        copy_lake(source, copy, selection)
        state = read_state(copy)
        assert (state.number, state.undoings) == (whole.number, whole.undoings)
        assert set(state.files) == set(kept)
        assert verify_lake(copy).damage == []
        if selection == Selection():
            check_same(source, copy)
        elif selection.lacking:
            assert (state.segments, state.ranges) == ((), whole.ranges)
        else:
            assert state.ranges == ((9, 10),)


def test_days_of_a_lake(read_lake: Path, copy: Path, tmp_path: Path) -> None:
    report = copy_lake(read_lake, copy, SECOND_DAY)
    assert (report.ranges, report.snapshot) == (((16, 20),), 3)
    assert report.selection == read_selection(copy) == SECOND_DAY
    assert copy_lake(read_lake, copy).commits == 0
    with pytest.raises(CopyRefused, match=r"days 2024-01-17\.\.2024-01-17, all tables of its sou"):
        copy_lake(read_lake, copy, Selection("2024-01-02"))
    with pytest.raises(CopyRefused, match="has no blocks of days 2030"):
        copy_lake(read_lake, tmp_path / "other", Selection("2030-01-01"))
    assert not (tmp_path / "other" / SELECTION_FILE).exists()
    with pytest.raises(CopyRefused, match="is the source itself"):
        copy_lake(read_lake, read_lake)
    copy_lake(read_lake, tmp_path / "other")
    check_same(read_lake, tmp_path / "other")
    assert not (tmp_path / "other" / SELECTION_FILE).exists()
    # A copy of a copy knows its missing blocks as well.
    assert copy_lake(copy, tmp_path / "third", Selection(tables=FEW)).ranges == ((16, 20),)
    assert read_selection(tmp_path / "third") == SECOND_DAY.narrow(Selection(tables=FEW))


def test_days_of_a_pruned_lake(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    commit_days(lake)
    early = Selection(None, "2024-01-02")
    copy_lake(lake, tmp_path / "early", early)
    prune_lake(lake, "2024-01-04", SETTINGS)
    pruned = read_state(lake).pruned_ranges
    # Kept rows are in the last pruned day: a copy without them knows nothing of these blocks.
    for first_day, expected in (("2024-01-05", ()), ("2024-01-04", ()), ("2024-01-03", pruned)):
        copy = tmp_path / first_day
        copy_lake(lake, copy, Selection(first_day))
        state = read_state(copy)
        assert state.pruned_ranges == expected
        assert state.ranges[-1][1] == 50
        assert copy_lake(copy, tmp_path / f"again-{first_day}").ranges == state.ranges
        assert read_state(tmp_path / f"again-{first_day}").pruned_ranges == expected
    refuse("no blocks of days", lake, tmp_path / "early", early, error=CopyRefused)


def test_segments_of_days(lake: Path, tmp_path: Path) -> None:
    rebuild_index(lake)
    segments = read_state(lake).segments
    copy_lake(lake, tmp_path / "copy", SECOND_DAY)
    kept = read_state(tmp_path / "copy").segments
    assert set(kept) <= set(segments)
    assert open_index(open_snapshot(tmp_path / "copy"), SETTINGS) is not None


def test_a_copy_without_tables_says_so(read_lake: Path, copy: Path) -> None:
    copy_lake(read_lake, copy, Selection(tables=FEW))
    snapshot = open_snapshot(copy)
    assert "wallets" in snapshot.lacking
    assert "messages" not in snapshot.lacking
    assert snapshot.is_sound_until(float("-inf"))
    assert open_index(snapshot, SETTINGS) is None
    with pytest.raises(TableLacking, match="a copy without the table wallets: pull it"):
        raise snapshot.damaged["wallets"]
    connection = connect(snapshot, statement="from messages")
    assert connection.execute("select count(*) from messages").fetchone() == (60,)
    assert open_snapshot(copy, check_digests=False).lacking == snapshot.lacking
    assert open_snapshot(read_lake).lacking == ()


# Kills


def make_kills(source: str, copy: Path, kills: int, seed: int) -> None:
    """Pull until it ends, killed at random moments; readers always find the copy intact."""
    rng = random.Random(seed)  # noqa: S311 - no secret, but a seed
    began_s = time.monotonic()
    copy_lake(source, copy)
    takes_ms = (time.monotonic() - began_s) * 1000
    done = 0
    while done < kills:
        shutil.rmtree(copy, ignore_errors=True)  # killed before it existed
        for _ in range(3):
            ended = run_child(lambda: copy_lake(source, copy), "-", rng.uniform(1, takes_ms))
            done += ended == KILLED
            assert ended in (KILLED, "ended")
            if list_log(copy)[0]:
                assert all(not snapshot.damaged for snapshot in [open_snapshot(copy)])


@pytest.mark.parametrize("kills", [KILLS, pytest.param(MANY_KILLS, marks=pytest.mark.long)])
def test_random_kills(grown: Path, copy: Path, kills: int) -> None:
    with plain_server(grown) as url:
        make_kills(url, copy, kills, seed=kills)
        copy_lake(url, copy)
    sweep_orphans(copy, LakeSettings(orphan_grace_s=0))
    check_same(grown, copy)
    assert verify_lake(copy).orphans == []


OTHERS = {"file.renamed"}
"""Points of commits alone."""

PULL_POINTS = [
    point for point in POINTS if point.split(".")[0] in ("file", "pull") and point not in OTHERS
]


@pytest.mark.parametrize("point", PULL_POINTS)
def test_killed_at_a_point(grown: Path, copy: Path, point: str) -> None:
    for count in (1, 2):
        assert run_killed(lambda: copy_lake(grown, copy), f"{point}:{count}") or count == 2
        if list_log(copy)[0]:
            snapshot = open_snapshot(copy)
            assert not snapshot.damaged
            assert snapshot.number == read_state(grown).number
    copy_lake(grown, copy)
    sweep_orphans(copy, LakeSettings(orphan_grace_s=0))
    check_same(grown, copy)


def test_a_reader_never_sees_a_commit_in_between(
    grown: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = read_state(grown).number
    log = LogReader(copy)
    seen: list[int] = []

    def look(_point: str) -> None:
        if list_log(copy)[0]:
            seen.append(read_state(copy).number)
            seen.append(log.read().number)

    monkeypatch.setattr(pulling, "reach", look)
    copy_lake(grown, copy)
    assert set(seen) == {newest}


def test_checkpoints_of_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    monkeypatch.setattr(pulling, "CHECKPOINT_COMMITS", 3)
    kept = []
    for number in range(1, 8):
        commit_rows(source, number, number, rows=1, tables=("blocks",), day="2024-01-01")
        if number not in (1, 2, 5):
            copy_lake(source, copy)
            kept.append(list_log(copy)[1])
    assert kept == [[3], [3], [3, 6], [3, 6]]
    check_same(source, copy)


# Sources that lie


def change_commit(lake: Path, changed: int, /, **changes: Any) -> None:
    """Rewrite a lake's log so that it is consistent with another commit."""
    last = read_state(lake).number
    previous = read_commit(lake, changed - 1)[1]
    for at in range(changed, last + 1):
        commit = msgspec.structs.replace(read_commit(lake, at)[0], previous=previous)
        if at == changed:
            commit = msgspec.structs.replace(commit, **changes)
        data, previous = encode_entry(commit)
        (lake / "_log" / f"{at}.json").write_bytes(data)


def change_file(lake: Path, number: int, **changes: Any) -> str:
    """Let a commit claim other facts about its last file; return the file's path."""
    *files, last = read_commit(lake, number)[0].added
    changed = msgspec.structs.replace(last, **changes)
    change_commit(lake, number, added=(*files, changed))
    return changed.path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bytes": 5}, "has more than 5 bytes"),
        ({"bytes": 1 << 40}, "instead of 1099511627776"),
        ({"rows": -1}, "claims .* -1 rows"),
        ({"bytes": 0}, "claims 0 bytes"),
        ({"sha256": "0" * 64}, "not the path of a lake file"),
        ({"sha256": "x"}, "not the path of a lake file"),
        ({"path": "../../evil"}, "not the path of a lake file"),
        ({"path": "/etc/passwd"}, "not the path of a lake file"),
        ({"path": "_log/1.json"}, "not the path of a lake file"),
        ({"path": "wallets/../wallets/day=2024-01-17/16-20-0000000000000000.parquet"}, "not the"),
        ({"table": "blocks"}, "not the path of a lake file: that is"),
    ],
)
def test_a_log_that_lies_about_a_file(
    lake: Path, copy: Path, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    change_file(lake, 2, **changes)
    refuse(words, lake, copy)
    assert list_log(copy)[0] == []
    assert not list(tmp_path.glob("evil*"))


def test_digests_that_agree_with_a_wrong_name(lake: Path, tmp_path: Path) -> None:
    fake = hashlib.sha256(b"x").hexdigest()
    path = change_file(
        lake, 2, sha256=fake, path=f"wallets/day=2024-01-17/16-20-{fake[:16]}.parquet"
    )
    refuse("it cannot be read", lake, tmp_path / "copy")
    (lake / path).write_bytes(b"another")
    assert list_log(tmp_path / "copy")[0] == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"number": 7}, "does not follow it"),
        ({"first_mc_seqno": 0}, "not a range of masterchain blocks"),
        ({"last_mc_seqno": 1 << 40}, "not a range of masterchain blocks"),
        ({"first_mc_seqno": 5}, "already has masterchain blocks 5..20"),
        ({"day": "today"}, "'today' is not a day"),
        ({"removed": ("../../../etc/passwd",)}, "not the path of a lake file"),
        ({"network": NetworkId(-3)}, "another network"),
    ],
)
def test_a_log_that_no_lake_can_have(
    lake: Path, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    change_commit(lake, 2, **changes)
    with pytest.raises(SourceRefused, match=words) as raised:
        copy_lake(lake, tmp_path / "copy")
    assert raised.value.file == "_log/2.json"
    assert list_log(tmp_path / "copy")[0] == []


def test_a_segment_that_lies(lake: Path, tmp_path: Path) -> None:
    rebuild_index(lake)
    *_, segment = read_commit(lake, 4)[0].segments or ()
    bad = msgspec.structs.replace(segment, path="lookups/../../1-2-00.run")
    change_commit(lake, 4, segments=(bad,))
    refuse(r"_log/4.json.*not the path of a lake file", lake, tmp_path / "copy")
    change_commit(lake, 4, segments=(segment, segment))
    refuse("the log adds it twice", lake, tmp_path / "copy")


@pytest.mark.parametrize("selection", [Selection(), Selection(tables=FEW)])
def test_a_log_that_does_not_chain(lake: Path, copy: Path, selection: Selection) -> None:
    entry = lake / "_log" / "2.json"
    good = entry.read_bytes()
    commit = msgspec.structs.replace(read_commit(lake, 2)[0], previous="00" * 32)
    entry.write_bytes(encode_entry(commit)[0])
    refuse(r"_log/2.json.*does not follow", lake, copy, selection)
    entry.write_bytes(good[:-9])
    refuse(r"_log/2.json.*not a log entry", lake, copy, selection)
    entry.write_bytes(good.replace(b"2024", b"2025", 1))
    refuse(r"_log/2.json.*do not match its digest", lake, copy, selection)
    entry.write_bytes(good.replace(b'{"sha256"', b'{"format":9,"sha256"'))
    refuse(r"_log/2.json", lake, copy, selection, error=LakeTooNew)
    entry.write_bytes(good)
    assert copy_lake(lake, copy, selection).commits == 3


def test_an_entry_without_end(lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "ENTRY_BYTES", 1000)
    refuse(r"_log/1.json.*more than 1000 bytes", lake, tmp_path / "copy")


def test_flips(read_lake: Path, copy: Path) -> None:
    """A bit flipped in transit never becomes a file, and the next pull gets the right bytes."""
    rng = random.Random(5)  # noqa: S311 - no secret, but a seed
    files = list(live_files(read_lake))
    with serving_folder(read_lake) as server:
        for path in rng.sample(files, 6):
            data = bytearray((read_lake / path).read_bytes())
            data[rng.randrange(len(data) - 2)] ^= 1 << rng.randrange(8)
            server.replaced = {path: bytes(data)}
            with pytest.raises((SourceRefused, LakeTooNew), match=path):
                copy_lake(server.url, copy)
            assert list_log(copy)[0] == []
            if path[0] != "_":
                assert not (copy / path).exists()
            shutil.rmtree(copy)
        server.replaced = {}
        copy_lake(server.url, copy)
    check_same(read_lake, copy)


# Sources that go away, or back


def test_a_source_that_vanishes(
    read_lake: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_PAUSE_S", 0.001)
    with serving_folder(read_lake) as server:
        server.cut_after = 1 + max(file.stat().st_size for file in read_lake.glob("_log/*.json"))
        refuse("broke off", server.url, copy, error=StorageError)
        assert list_log(copy)[0] == []
        first = len([path for path in file_bytes(copy) if path.endswith(".parquet")])
        server.cut_after = None
        server.asked.clear()
        copy_lake(server.url, copy)
        asked = {path for path, _, _ in server.asked if path.endswith(".parquet")}
    assert first > 0
    assert len(asked) == len(read_state(read_lake).files) - first
    check_same(read_lake, copy)


def test_files_that_are_merged_meanwhile(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, other = tmp_path / "copy", tmp_path / "other"
    shutil.copytree(lake, other)
    commit = read_commit(lake, 2)[0]
    removed = tuple(file.path for file in commit.added if file.table == "wallets")

    def merge(*inputs: Any, **options: Any) -> None:
        """Remove files from the source before the first is copied."""
        if (lake / removed[0]).exists():
            (lake / removed[0]).unlink()
            state = read_state(lake)
            newer = msgspec.structs.replace(
                commit,
                number=state.number + 1,
                added=(),
                removed=removed,
                previous=state.digest,
                has_blocks=False,
            )
            (lake / "_log" / f"{newer.number}.json").write_bytes(encode_entry(newer)[0])
        copy_file(*inputs, **options)

    monkeypatch.setattr("tonlake.lake.copy.pull.copy_file", merge)
    assert copy_lake(lake, copy).commits == 4
    check_same(lake, copy)
    (other / removed[0]).unlink()
    refuse(removed[0], other, tmp_path / "third")


@pytest.mark.parametrize("selection", [Selection(), Selection(tables=FEW)])
def test_a_source_that_went_back(lake: Path, tmp_path: Path, selection: Selection) -> None:
    copy, before = tmp_path / "copy", tmp_path / "before"
    copy_lake(lake, copy, selection)
    shutil.copytree(lake, before)
    (lake / "_log" / "3.json").unlink()
    refuse(r"_log/3.json.*it is missing, but the copy has 3", lake, copy, selection)
    commit_rows(lake, 21, 30, seed=1)
    refuse(r"_log/3.json.*another lake, or was rolled back", lake, copy, selection)
    commit_rows(lake, 40, 41)
    refuse(r"_log/4.json.*another lake, or was rolled back", lake, copy, selection)
    assert read_state(copy).number == 3
    assert copy_lake(before, copy, selection).commits == 0


@pytest.mark.parametrize("selection", [Selection(), Selection(tables=FEW)])
def test_a_source_that_goes_back_between_two_runs(
    lake: Path, copy: Path, selection: Selection
) -> None:
    """Entries of an interrupted run are dropped when the source has others."""
    run_killed(lambda: copy_lake(lake, copy, selection), "pull.copied")
    (lake / "_log" / "3.json").unlink()
    commit_rows(lake, 31, 33)
    commit_rows(lake, 34, 35)
    copy_lake(lake, copy, selection)
    assert read_state(copy).ranges == read_state(lake).ranges


@pytest.mark.parametrize("selection", [Selection(), Selection(tables=FEW)])
def test_a_source_that_goes_back_while_the_log_is_filled(
    lake: Path, copy: Path, selection: Selection
) -> None:
    run_killed(lambda: copy_lake(lake, copy, selection), "pull.adopted")
    assert list_log(copy)[0] == [3]
    (lake / "_log" / "3.json").unlink()
    refuse(r"_log/3.json.*it is missing, but the copy has 3", lake, copy, selection)
    commit_rows(lake, 31, 33)
    refuse(r"_log/3.json.*another lake, or was rolled back", lake, copy, selection)
    assert list_log(copy)[0] == [3]
    assert open_snapshot(copy).is_sound_until(float("-inf"))


# The copy's own folder


def test_a_copy_with_commits_of_its_own(lake: Path, copy: Path, tmp_path: Path) -> None:
    copy_lake(lake, copy)
    rebuild_index(copy)
    commit_rows(lake, 40, 41)
    refuse("the copy has commits of its own", lake, copy)
    commit_rows(tmp_path / "own", 1, 3)
    refuse("another lake", lake, tmp_path / "own")


def test_one_at_a_time(lake: Path, copy: Path) -> None:
    with (
        open_pull(lake, copy) as puller,
        pytest.raises(CopyRefused, match="another process copies into"),
        open_pull(lake, copy),
    ):
        pass
    puller.bring()
    check_same(lake, copy)


def test_a_commit_between(lake: Path, copy: Path) -> None:
    copy_lake(lake, copy)
    commit_rows(lake, 40, 41)
    with open_pull(lake, copy) as puller:
        commit_rows(copy, 50, 51)
        with pytest.raises(CommitConflict, match="another writer"):
            puller.bring()


def test_no_lake(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CopyRefused, match=r"holds no lake: it has no _log/1.json"):
        copy_lake(tmp_path / "empty", tmp_path / "copy")


def test_no_room(lake: Path, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def fail(*_: object) -> None:
        raise LakeFull("no room")

    with monkeypatch.context() as patch:
        patch.setattr("tonlake.lake.storage.storage.seal_file", fail)
        with pytest.raises(LakeFull):
            copy_lake(lake, copy)
    assert list_log(copy)[0] == []
    copy_lake(lake, copy)
    check_same(lake, copy)


def test_a_sweep_does_not_disturb(lake: Path, copy: Path) -> None:
    copy_lake(lake, copy)
    with hold_lock(copy / LOCK_FILE):
        assert sweep_orphans(copy, LakeSettings(orphan_grace_s=0)) == []
    assert sweep_orphans(copy, LakeSettings(orphan_grace_s=0)) == []
    check_same(lake, copy)


def lengthen(lake: Path) -> None:
    """Add days to a lake."""
    with mock.patch.object(commit, "CHECKPOINT_COMMITS", 2):
        for at in range(list_log(lake)[0][-1] + 1, 11):
            commit_rows(lake, 30 + at, 30 + at, rows=3)
        compact_lake(lake, SETTINGS)


def shorten(lake: Path) -> None:
    """Add days to a lake, and let its log begin at commit 6."""
    lengthen(lake)
    sweep_orphans(lake, LakeSettings(orphan_grace_s=0, log_entries=4, log_age_s=0))
    assert list_log(lake)[0][0] == 6


@pytest.mark.parametrize("selection", [Selection(), Selection(tables=FEW), SECOND_DAY])
def test_a_shortened_log(read_lake: Path, tmp_path: Path, selection: Selection) -> None:
    source, old = tmp_path / "lake", tmp_path / "old"
    shutil.copytree(read_lake, source)
    copy_lake(source, old, selection)
    idle = LogReader(old)
    assert idle.read().number == 3
    shorten(source)
    with plain_server(source) as url:
        assert copy_lake(url, old).snapshot == copy_lake(url, tmp_path / "new", selection).snapshot
    state = read_state(old)
    assert state == idle.read() == read_state(tmp_path / "new")
    assert list_log(old)[0] == list_log(source)[0]
    expected = read_state(source)
    assert set(state.files) == {file for file in expected.files if selection.has(file.path)}
    if selection == Selection():
        assert state == expected
    for copy in (old, tmp_path / "new"):
        assert verify_lake(copy).damage == []
        assert copy_lake(copy, tmp_path / f"{copy.name}-again").snapshot == state.number
        assert read_state(tmp_path / f"{copy.name}-again").files == state.files
    commit_rows(source, 50, 50, rows=3, day="2024-01-17")
    assert copy_lake(source, old).commits == 1
    assert verify_lake(old).damage == []
    assert read_state(old).ranges[-1] == (50, 50)


def test_a_shortened_log_of_another_lake(lake: Path, tmp_path: Path) -> None:
    source = tmp_path / "other"
    commit_rows(source, 900, 900)
    copy_lake(source, tmp_path / "copy")
    shorten(lake)
    refuse("lacks masterchain blocks 900", lake, tmp_path / "copy")
    (lake / "_log/6.checkpoint.json").unlink()
    refuse(r"6\.checkpoint\.json.*missing", lake, tmp_path / "new")


@pytest.mark.parametrize("point", ["pull.synced", "pull.adopted", "pull.filled:2"])
def test_a_copy_killed_while_its_log_is_shortened(lake: Path, copy: Path, point: str) -> None:
    copy_lake(lake, copy)
    shorten(lake)
    assert run_killed(lambda: copy_lake(lake, copy), point)
    commit_rows(lake, 60, 60, rows=3)
    copy_lake(lake, copy)
    assert read_state(copy) == read_state(lake)
    assert list_log(copy)[0] == list_log(lake)[0]
    assert verify_lake(copy).damage == []


@pytest.mark.parametrize("selection", [Selection(), Selection(tables=FEW), SECOND_DAY])
@pytest.mark.parametrize("is_read", [False, True])
def test_a_log_shortened_since_a_copy_was_killed(
    lake: Path, copy: Path, selection: Selection, *, is_read: bool
) -> None:
    """The source removes entries that the copy lacks, before it is read again, or meanwhile."""
    copy_lake(lake, copy, selection)
    lengthen(lake)
    assert run_killed(lambda: copy_lake(lake, copy, selection), "pull.filled")
    idle = LogReader(copy)
    before = idle.read()
    if is_read:
        with mock.patch.object(pulling, "reach", side_effect=lambda _point: shorten(lake)):
            copy_lake(lake, copy, selection)
    else:
        shorten(lake)
        copy_lake(lake, copy, selection)
    assert list_log(lake)[0][0] == 6
    assert idle.read() == read_state(copy) == before
    commit_rows(lake, 60, 60, rows=3, day="2024-01-17")
    assert copy_lake(lake, copy).commits == 1
    state, expected = read_state(copy), read_state(lake)
    assert set(state.files) == {file for file in expected.files if selection.has(file.path)}
    assert idle.read() == state
    assert verify_lake(copy).damage == []


# Followers


class Following:
    """A follower in a thread."""

    def __init__(self, source: str, copy: Path, selection: Selection) -> None:
        self.over, self.problems = threading.Event(), list[str]()
        self.seen: list[int] = []
        self.error: Exception | None = None
        self._inputs = source, copy, selection
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        settings = LakeSections(lake=LakeSettings(orphan_grace_s=0))
        try:
            with open_pull(*self._inputs) as puller:
                PullFollower(
                    puller,
                    settings,
                    notify=self.problems.append,
                    on_report=lambda report: self.seen.append(report.snapshot),
                ).run(self.over.is_set)
        except Exception as error:  # noqa: BLE001 - shown by the test
            self.error = error

    def wait(self, number: int) -> None:
        """Wait for a commit."""
        until_s = time.monotonic() + 60
        while time.monotonic() < until_s and self.error is None:
            if any(snapshot >= number for snapshot in self.seen):
                return
            time.sleep(0.01)
        raise AssertionError(f"commit {number} did not come: {self.error}, {self.problems}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._thread.join()


@pytest.mark.parametrize("selection", [Selection(), Selection(tables=FEW)])
def test_a_follower(tmp_path: Path, selection: Selection) -> None:
    source, copy = tmp_path / "lake", tmp_path / "copy"
    steps = list(History().steps())
    steps[0](source)
    with plain_server(source) as url, Following(url, copy, selection) as following:
        for step in steps[1:]:
            step(source)
            following.wait(read_state(source).number)
        note = read_following(copy)
        assert note is not None
        assert note.lake_last_mc_seqno == 10
    assert following.error is None
    assert read_following(copy) is None
    if selection == Selection():
        check_same(source, copy)
    else:
        assert verify_lake(copy).damage == []


def test_a_follower_waits_for_its_source(
    lake: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_PAUSE_S", 0.001)
    monkeypatch.setattr("tonlake.lake.copy.follow.PAUSE_S", 0.01)
    with serving_folder(lake) as server, Following(server.url, copy, Selection()) as following:
        following.wait(3)
        server.statuses = [500] * 20
        commit_rows(lake, 40, 41)
        following.wait(4)
        assert len(following.problems) == 1
        assert "responds with 500" in following.problems[0]
    assert following.error is None
    check_same(lake, copy)


def test_a_follower_sees_that_its_source_went_back(
    lake: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tonlake.lake.copy.follow.CHECK_EVERY_S", 0.0)
    with serving_folder(lake) as server, Following(server.url, copy, Selection()) as following:
        following.wait(3)
        (lake / "_log" / "3.json").unlink()
        following._thread.join()
    assert isinstance(following.error, SourceRefused)
    assert following.error.file == "_log/3.json"
    note = read_following(copy)
    assert note is not None
    assert "was rolled back" in (note.problem or "")
