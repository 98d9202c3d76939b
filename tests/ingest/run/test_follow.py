"""A follower of a node with all kinds of faults ends with the same lake as without them."""

import os
import resource
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest

from tests.ingest.simulator.chain import fork
from tests.ingest.simulator.node import SimulatedNode
from tests.ingest.simulator.service import MAINTENANCE, find_child
from tests.ingest.source.node.nodewriter import NodeWriter, open_store
from tests.ingest.whole import read_all
from tests.patience import compose, vary, wait_for
from tonlake.ingest.assemble.chain import find_last_common
from tonlake.ingest.blocks import BlockSource, McBundle, ZeroState
from tonlake.ingest.errors import SourceError
from tonlake.ingest.run import follow
from tonlake.ingest.run.follow import PACK_ROWS, Follower, Wakeup, keep_following
from tonlake.ingest.run.pipeline import Pipeline, ingest
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.source.origin import Origin
from tonlake.ingest.span import Span
from tonlake.lake.commit import commit
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import UndoRefused
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.following import measure_lag, read_following
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import DataFile, read_state
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.orphan import list_orphans
from tonlake.lake.maintenance.verify import verify_lake

DAY_S = 86_400
SETTINGS = compose(
    ingest={"detect_contracts": False, "block_proofs": False},
    follow={"patience_ms": 3_600_000, "shorter_ms": 0},
    lake={"maintenance_commits": 0},
)


@pytest.fixture(autouse=True)
def frequent_checkpoints() -> Iterator[None]:
    with mock.patch.object(commit, "CHECKPOINT_COMMITS", 10):
        yield


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    with closing(SimulatedNode(tmp_path / "db")) as simulated:
        yield simulated


class Watched(Follower):
    """A follower with all its events."""

    def __init__(self, db_dir: Path, lake: Path, settings: IngestSections = SETTINGS) -> None:
        self.notices: list[str] = []
        super().__init__(
            lambda: open_node(db_dir, open_indexes=2), lake, settings, notify=self.notices.append
        )

    def _open_pipeline(self, source: BlockSource) -> Pipeline:
        """Pack commits although maintenance, which would unpack them, is off."""
        pipeline = super()._open_pipeline(source)
        pipeline.pack_rows = PACK_ROWS
        return pipeline


@pytest.fixture
def follower(node: SimulatedNode, tmp_path: Path) -> Iterator[Watched]:
    with closing(Watched(node.db_dir, tmp_path / "lake")) as watched:
        yield watched


def write(node: SimulatedNode, bundles: list[McBundle], last: int) -> None:
    for bundle in bundles[node.last : last]:
        node.write(bundle)


def advance(node: SimulatedNode, follower: Follower, bundles: list[McBundle], *lasts: int) -> None:
    """Show the follower the node at each of these blocks."""
    for last in lasts:
        write(node, bundles, last)
        follower.step()


class Given:
    """The blocks of a chain as a source, which has nothing else."""

    def __init__(self, bundles: list[McBundle]) -> None:
        self._bundles = bundles

    def read_unchecked(self, mc_seqno: int) -> McBundle:
        return self._bundles[mc_seqno - 1]

    def zero_states(self) -> tuple[ZeroState, ...]:
        return ()

    def describe(self) -> dict[str, str]:
        return {}


def check(lake: Path, bundles: list[McBundle], folder: Path) -> None:
    """Compare a lake's rows with those of one ingested from the same chain in one run."""
    chain: Any = Given(bundles)
    report = ingest(chain, folder / "reference", Span(1, len(bundles)), SETTINGS)
    assert report.committed
    assert not report.holes
    ours, theirs = (read_all(each, "action_ranges") for each in (lake, folder / "reference"))
    assert ours == theirs
    assert not verify_lake(lake).damage


def test_each_block_is_there_after_the_next_step(
    node: SimulatedNode, follower: Watched, tmp_path: Path, bundles: list[McBundle]
) -> None:
    for last in (1, 2, 3, 10, 30):
        advance(node, follower, bundles, last)
        assert open_snapshot(tmp_path / "lake").ranges == ((1, last),)
    number = read_state(tmp_path / "lake").number
    follower.step()
    assert read_state(tmp_path / "lake").number == number == 5
    assert not follower.notices


def test_maintenance_that_gets_no_time_is_waited_for(
    node: SimulatedNode, tmp_path: Path, bundles: list[McBundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "MAX_BEHIND", 8)
    lake, settings = tmp_path / "lake", vary(SETTINGS, lake={"maintenance_commits": 4})
    with closing(Watched(node.db_dir, lake, settings)) as follower:
        advance(node, follower, bundles, 1)
        maintenance = wait_for(lambda: find_child(os.getpid(), MAINTENANCE))
        os.kill(maintenance, signal.SIGSTOP)
        advance(node, follower, bundles, *range(2, 31))
        (_, last), *_ = read_state(lake).ranges
        assert 9 <= last <= 16
        assert follower.notices == ["waits for maintenance: 9 commits behind"]
        os.kill(maintenance, signal.SIGCONT)
        wait_for(lambda: follower.step() and read_state(lake).ranges == ((1, 30),))
        assert follower.notices[1:] == ["recovered"]


def test_another_chain_is_undone_by_a_commit(
    node: SimulatedNode, follower: Watched, tmp_path: Path, bundles: list[McBundle]
) -> None:
    lake = tmp_path / "lake"
    advance(node, follower, bundles, *range(20, 121, 5))
    before = open_snapshot(lake)
    other = fork(bundles[:140], 92, salt=7)
    node.roll_back(92)
    advance(node, follower, other, 130)
    undoing = read_state(lake).undoings[0]
    # The commit of blocks 91 to 95 spans the border: what is before it stays.
    assert (undoing.first_mc_seqno, undoing.last_mc_seqno) == (93, 120)
    gone = f"masterchain blocks 93..120 undone by commit {undoing.commit}"
    assert follower.notices == [f"{gone}: the node's chain differs after 92"]
    advance(node, follower, other, 140)
    check(lake, other, tmp_path)
    old = open_snapshot(lake, before.number)
    assert old.ranges == ((1, 120),)
    sql = "select max(mc_seqno) from transactions"
    with connect(old, statement=sql) as connection:
        assert connection.execute(sql).fetchall()[0][0] <= 120


def test_a_shorter_chain_is_undone_and_may_grow_again(
    node: SimulatedNode, follower: Watched, tmp_path: Path, bundles: list[McBundle]
) -> None:
    lake = tmp_path / "lake"
    advance(node, follower, bundles, 60, 70, 80, 90, 111)
    node.roll_back(75)
    follower.step()
    follower.step()
    assert open_snapshot(lake).ranges == ((1, 75),)
    check(lake, bundles[:75], tmp_path / "shorter")
    advance(node, follower, bundles, 119)
    check(lake, bundles[:119], tmp_path / "again")


def test_a_shorter_chain_is_waited_for(
    node: SimulatedNode, tmp_path: Path, bundles: list[McBundle]
) -> None:
    patient = vary(SETTINGS, follow={"shorter_ms": 3_600_000})
    with closing(Watched(node.db_dir, tmp_path / "lake", patient)) as follower:
        advance(node, follower, bundles, 20)
        node.roll_back(15)
        follower.step()
        assert open_snapshot(tmp_path / "lake").ranges == ((1, 20),)
        assert follower.notices == ["the node's chain ends with 15, the lake's with 20"]
        lag = measure_lag(tmp_path / "lake", read_state(tmp_path / "lake"))
        assert lag.problem == follower.notices[0]
        advance(node, follower, bundles, 22)
        assert open_snapshot(tmp_path / "lake").ranges == ((1, 22),)
        assert follower.notices[1:] == ["recovered"]


@pytest.mark.parametrize("files", [1, 2])
def test_what_was_compacted_and_looked_up_is_cut_at_the_border(
    node: SimulatedNode, follower: Watched, tmp_path: Path, bundles: list[McBundle], files: int
) -> None:
    lake = tmp_path / "lake"
    advance(node, follower, bundles, *range(10, 101, 10))
    rows = Counter[str]()
    for file in read_state(lake).files:
        rows[file.table] += file.rows
    few = vary(SETTINGS, lake={"compact_rows": max(rows.values()) * 3 // (2 * files + 1)})
    assert compact_lake(lake, few.lake).commits == files
    rebuild_index(lake)
    node.roll_back(88)
    follower.step()
    assert read_state(lake).undoings[0].first_mc_seqno == 89
    check(lake, bundles[:88], tmp_path / "shorter")
    other = fork(bundles[:110], 88, salt=3)
    advance(node, follower, other, 110)
    check(lake, other, tmp_path)
    found = open_snapshot(lake)
    with connect(found, statement="action_ranges actions traces") as connection:
        query = "select sum(traces), sum(actions), max(last_mc_seqno) from action_ranges"
        counted = "select (select count(*) from traces where state = 'complete'), count(*), 110"
        assert (
            connection.execute(query).fetchall()
            == connection.execute(f"{counted} from actions").fetchall()
        )


def test_a_file_over_the_border_does_not_need_its_blocks(
    node: SimulatedNode, follower: Watched, tmp_path: Path, bundles: list[McBundle]
) -> None:
    advance(node, follower, bundles, 40, 60)
    node.roll_back(50)
    other = fork(bundles[:60], 50, salt=1)
    write(node, other, 60)
    node.prune(0)
    follower.step()
    follower.step()
    assert read_state(tmp_path / "lake").ranges == ((1, 60),)
    check(tmp_path / "lake", other, tmp_path)


def test_an_unlike_chain_and_too_many_blocks_are_refused(
    node: SimulatedNode, tmp_path: Path, bundles: list[McBundle]
) -> None:
    lake = tmp_path / "lake"
    few = vary(SETTINGS, follow={"undo_mc_blocks": 5})
    with closing(Watched(node.db_dir, lake, few)) as follower:
        advance(node, follower, bundles, 10, 20)
        node.roll_back(14)
        with pytest.raises(UndoRefused, match=r"set \[follow\] undo_mc_blocks to 6 or more"):
            follower.step()
        write(node, fork(bundles[:20], 3, salt=1)[:14] and bundles, 20)
    other = SimulatedNode(tmp_path / "other")
    with closing(other):
        write(other, fork(bundles[:30], 0, salt=1), 30)
        with closing(open_node(other.db_dir)) as source:
            state = read_state(lake)
            with pytest.raises(SourceError, match="follows another chain"):
                find_last_common(source, lake, state, 30, max_mc_blocks=50)


def test_a_torn_package_is_waited_for(
    node: SimulatedNode, follower: Watched, tmp_path: Path, bundles: list[McBundle]
) -> None:
    advance(node, follower, bundles, 20)
    write(node, bundles, 21)
    tail = node.tear(100)
    follower.step()
    assert open_snapshot(tmp_path / "lake").ranges == ((1, 20),)
    node.mend(tail)
    advance(node, follower, bundles, 25)
    assert open_snapshot(tmp_path / "lake").ranges == ((1, 25),)
    check(tmp_path / "lake", bundles[:25], tmp_path)


def test_a_block_that_stays_unreadable_becomes_a_hole_and_is_healed(
    node: SimulatedNode, tmp_path: Path, bundles: list[McBundle]
) -> None:
    hasty = vary(SETTINGS, follow={"patience_ms": 0})
    lake = tmp_path / "lake"
    with closing(Watched(node.db_dir, lake, hasty)) as follower:
        write(node, bundles, 21)
        tail = node.tear(100)
        write(node, bundles, 21)
        path = node._torn
        whole = path.read_bytes() + tail
        path.write_bytes(whole[:-100] + bytes(100))
        for bundle in bundles[21:25]:
            node.write(bundle)
        for _ in range(3):
            follower.step()
        assert open_snapshot(lake).ranges == ((1, 20), (22, 25))
        assert any("masterchain block 21 cannot be read" in line for line in follower.notices)
        assert measure_lag(lake, read_state(lake)).holes == 1
        content = path.read_bytes()
        path.write_bytes(whole + content[len(whole) :])
        follower._heal(read_state(lake))
        assert open_snapshot(lake).ranges == ((1, 25),)
        assert follower.notices[-1] == "holes were filled"
    check(lake, bundles[:25], tmp_path)


def test_restarts_upgrades_and_pruning_are_passed(tmp_path: Path, bundles: list[McBundle]) -> None:
    lake = tmp_path / "lake"
    node = SimulatedNode(tmp_path / "db", slices=(0,), form="oldest")
    with closing(node), closing(Watched(node.db_dir, lake)) as follower:
        for at, form in ((31, "old"), (61, "new")):
            advance(node, follower, bundles, at - 6)
            node.restart()
            write(node, bundles, at - 1)
            node.upgrade(form, at)
            advance(node, follower, bundles, at + 3)
            assert open_snapshot(lake).ranges == ((1, at + 3),)
        node.prune(31)
        node.compact()
        advance(node, follower, bundles, 80)
        assert not follower.notices
    check(lake, bundles[:80], tmp_path)


def test_a_node_that_is_gone_is_waited_for(
    node: SimulatedNode, follower: Watched, tmp_path: Path, bundles: list[McBundle]
) -> None:
    advance(node, follower, bundles, 5)
    node.db_dir.rename(tmp_path / "away")
    assert follower.step() > 0
    assert "SourceError" in follower.notices[0]
    note = read_following(tmp_path / "lake")
    assert note is not None
    assert note.problem == follower.notices[0]
    (tmp_path / "away").rename(node.db_dir)
    advance(node, follower, bundles, 8)
    assert open_snapshot(tmp_path / "lake").ranges == ((1, 8),)


def test_a_lake_that_is_gone_is_waited_for(
    node: SimulatedNode, follower: Watched, tmp_path: Path, bundles: list[McBundle]
) -> None:
    """Its disk may be away for a moment: another lake in its place would hide it."""
    lake, away = tmp_path / "lake", tmp_path / "away"
    advance(node, follower, bundles, 5, 6)
    lake.rename(away)
    advance(node, follower, bundles, 7, 8)
    assert not lake.exists()
    assert follower.notices == [
        f"{lake} holds no lake any more: put it back, or restart to begin one"
    ]
    away.rename(lake)
    advance(node, follower, bundles, 9)
    assert follower.notices[1:] == ["recovered"]
    check(lake, bundles[:9], tmp_path)


class Overtaken:
    """A source that lets another follower commit each later block while this one reads it."""

    def __init__(self, source: BlockSource, step: Callable[[], object]) -> None:
        self._source = source
        self._step = step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def read_unchecked(self, mc_seqno: int) -> McBundle:
        if mc_seqno > 1:
            self._step()
        return self._source.read_unchecked(mc_seqno)


def test_two_followers_of_one_lake_say_so_and_go_on(
    node: SimulatedNode, tmp_path: Path, bundles: list[McBundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    notices: list[str] = []
    with closing(Watched(node.db_dir, lake)) as two:
        source: Any = Overtaken(open_node(node.db_dir, open_indexes=2), two.step)
        with closing(Follower(lambda: source, lake, SETTINGS, notify=notices.append)) as one:
            for last in range(1, 9):
                advance(node, one, bundles, last)
                one.step()
            assert open_snapshot(lake).ranges == ((1, 8),)
            for said in (notices, two.notices):
                assert len(said) == 1
                assert "another follower (process" in said[0]
                assert "stop one of the two" in said[0]
            lag = measure_lag(lake, open_snapshot(lake))
            assert (lag.problem, lag.node_last_mc_seqno) == (notices[0], 8)
            later_s = time.monotonic() + 61
            monkeypatch.setattr(time, "monotonic", lambda: later_s)
            one.step()
    assert notices[1:] == ["recovered"]


@pytest.mark.parametrize("limit_bytes", [0, 3000, 30_000])
def test_a_full_disk_is_waited_for(
    tmp_path: Path, bundles: list[McBundle], limit_bytes: int
) -> None:
    """A file may not grow beyond a limit, set while the node rests: a commit ends while writing."""
    lake = tmp_path / "lake"
    with closing(Watched(tmp_path / "db", lake)) as follower:
        with closing(SimulatedNode(tmp_path / "db")) as node:
            advance(node, follower, bundles, 40)
            write(node, bundles, 100)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
        try:
            follower.step()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert open_snapshot(lake).ranges == ((1, 40),)
        assert not verify_lake(lake).damage
        assert follower.notices
        follower.step()
        assert open_snapshot(lake).ranges == ((1, 100),)
        assert follower.notices[-1] == "recovered"
    check(lake, bundles[:100], tmp_path)


def test_the_clock_may_jump(
    node: SimulatedNode, tmp_path: Path, bundles: list[McBundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files replaced a moment ago stay for their readers, whatever the time of day."""
    lake, now_s, up_s = tmp_path / "lake", time.time(), time.monotonic()
    patient = vary(SETTINGS, lake={"orphan_grace_s": 100, "replaced_grace_s": 100})
    monkeypatch.setattr("time.monotonic", lambda: up_s)
    with closing(Watched(node.db_dir, lake, patient)) as follower:
        before: list[DataFile] = []
        for last, jump_s in ((10, 0), (20, 400 * DAY_S), (30, -DAY_S), (40, 2**31), (50, 0)):
            monkeypatch.setattr("time.time", lambda jump_s=jump_s: now_s + jump_s)
            up_s += 60
            advance(node, follower, bundles, last)
            assert open_snapshot(lake).ranges == ((1, last),)
            follower.step()
            lag = measure_lag(lake, read_state(lake))
            assert lag.lag_s is not None
            assert lag.lag_s >= 0
            assert not list(find_damage(lake, before, trust_earlier=False))
            before = list(read_state(lake).files)
            compact_lake(lake, SETTINGS.lake)
        left = list_orphans(lake, read_state(lake))
        monkeypatch.setattr("time.time", lambda: now_s + 1000)
        with mock.patch("tonlake.ingest.run.follow.return_memory") as returned:
            for _ in range(2):
                up_s += 101
                follower.step()
        assert left
        assert returned.call_count == 2
        assert not list_orphans(lake, read_state(lake))
        assert not follower.notices
    check(lake, bundles[:50], tmp_path)


def test_a_slice_that_is_away_for_a_moment_is_no_hole(
    node: SimulatedNode, follower: Watched, tmp_path: Path, bundles: list[McBundle]
) -> None:
    """A slice whose files are not there looks as if it had been deleted."""
    advance(node, follower, bundles, 20)
    write(node, bundles, 50)
    index = node.db_dir / "archive/packages/arch0000/archive.00047.index"
    index.rename(tmp_path / "away")
    follower.step()
    (tmp_path / "away").rename(index)
    for _ in range(3):
        follower.step()
    assert open_snapshot(tmp_path / "lake").ranges == ((1, 50),)


def test_a_slice_that_stays_away_is_a_hole(
    node: SimulatedNode, follower: Watched, tmp_path: Path, bundles: list[McBundle]
) -> None:
    advance(node, follower, bundles, 20)
    write(node, bundles, 150)
    node.prune(47)
    for _ in range(5):
        follower.step()
    assert open_snapshot(tmp_path / "lake").ranges == ((1, 46), (140, 150))


RECENT = compose(
    ingest={"detect_contracts": False},
    follow={"patience_ms": 3_600_000, "shorter_ms": 0},
    lake={"maintenance_commits": 0},
)
INDEX = "archive/packages/arch0000/archive.00000.index"
TEMPORARY = "files/packages/temp.archive.1795237200.index"
CLIENT, WRITTEN, LAST = 130, 140, 238
HANDLE_BYTES = 84


def test_a_follower_reads_what_is_not_archived_yet(demo_node: Path, tmp_path: Path) -> None:
    db_dir, lake = tmp_path / "db", tmp_path / "lake"
    with closing(open_node(demo_node)) as source:
        client, newest = (source.read_bundle(seqno).blocks[0].id for seqno in (CLIENT, LAST))
        expected = source.find_head(LAST)
    shutil.copytree(demo_node, db_dir)
    (manifest,) = (db_dir / INDEX).glob("MANIFEST-*")
    os.truncate(manifest, 198)  # the archive ends with masterchain block 118
    writer = NodeWriter.__new__(NodeWriter)
    notices: list[str] = []
    with (
        closing(open_store(db_dir / "state")) as writer.state,
        closing(open_store(db_dir / TEMPORARY)) as index,
        closing(
            Follower(lambda: open_node(db_dir), lake, RECENT, notify=notices.append)
        ) as follower,
    ):
        writer.write_shard_client(client)
        later = {
            key: value
            for key, value in cast("Iterable[tuple[bytes, bytes]]", index.items())
            if len(key) == HANDLE_BYTES
            and key[4:8] == b"\xff" * 4
            and int.from_bytes(key[16:20], "little") > WRITTEN
        }
        for key in later:
            del index[key]
        follower.step()
        follower.step()
        assert read_state(lake).ranges == ((1, WRITTEN),)
        for key, value in later.items():
            index[key] = value
        follower.step()
        assert read_state(lake).ranges == ((1, LAST),)
        writer.write_shard_client(newest)
        follower.step()
        state = read_state(lake)
        assert (state.ranges, state.undoings) == (((1, LAST),), ())
        assert follower._newest is not None
        assert expected is not None
        assert follower._newest.root_hash == expected.root_hash
    assert notices == []


EVENT = bytes(84)
FOREVER_S = 3_600.0
"""A wait that is not ended fails by the time limit of the suite."""


def write_events(path: Path, times: int = 1) -> None:
    pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    for _ in range(times):
        os.write(pipe, EVENT)
    os.close(pipe)


def test_an_event_ends_the_wait_and_all_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "events"
    os.mkfifo(path)
    with closing(Wakeup(str(path))) as wakeup:
        wakeup.wait(0)  # opens the pipe: before that there is no reader
        write_events(path, 3)
        wakeup.wait(FOREVER_S)
        left = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with pytest.raises(BlockingIOError):
            os.read(left, 1)
        os.close(left)
        # The node went away and came back: neither wakes by itself.
        wakeup.wait(0)
        writer = threading.Thread(target=write_events, args=(path,))
        writer.start()
        wakeup.wait(FOREVER_S)
        writer.join()


def test_a_pipe_may_appear_later_and_be_recreated(tmp_path: Path) -> None:
    path = tmp_path / "events"
    with closing(Wakeup(str(path))) as wakeup:
        for _ in range(2):
            wakeup.wait(0)
            os.mkfifo(path)
            wakeup.wait(0)
            write_events(path)
            wakeup.wait(FOREVER_S)
            path.unlink()
        path.write_bytes(EVENT)
        wakeup.wait(0)
        assert path.read_bytes() == EVENT


def test_without_a_pipe_time_passes() -> None:
    with closing(Wakeup("")) as wakeup:
        wakeup.wait(0)


def test_an_interrupted_follower_says_what_it_waits_for(tmp_path: Path) -> None:
    said: list[str] = []
    interrupted = mock.patch.object(Follower, "run", side_effect=KeyboardInterrupt)
    with interrupted, pytest.raises(KeyboardInterrupt):
        keep_following(Origin(node=tmp_path), tmp_path, SETTINGS, notify=said.append)
    assert ["interrupt again" in text for text in said] == [True]
