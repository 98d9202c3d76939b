"""Follows a running node: ingests every new masterchain block.

A step polls the node once: it ingests new blocks, undoes blocks that are no longer in the node's
chain, and retries blocks that could not be read. Each step starts from the state of the lake, so a
failed step is reported and leaves nothing to clean up.

A node started with ``--db-event-fifo PATH`` writes an event of 84 bytes to that named pipe whenever
a block was applied (ton_api.tl: the constructor, then tonNode.blockIdExt), and when a shard block
was signed. Events end a wait: the blocks themselves are read from the node's files, signed ones
from the temporary packages. All signed blocks that the lake lacks are decoded together, as if the
next masterchain block committed them. Their rows replace those in ``tonlake.lake.log.following``,
from where streams send them.
"""

import os
import re
import select
import stat
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NoReturn

import msgspec

from tonlake.ingest.assemble.chain import check_network, find_last_common, read_heads
from tonlake.ingest.blocks import BlockId, BlockSource, KeyMark, McBundle, McHead, RawBlock
from tonlake.ingest.decode.block.header import ShardTop, read_header, read_shard_tops
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.trace import reopen_traces
from tonlake.ingest.errors import BlockCorrupt, BlockPruned, IngestError, SourceError, SourceForeign
from tonlake.ingest.run.pipeline import IngestReport, Pipeline
from tonlake.ingest.run.workers import Workers, count_workers, start_workers
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node import tl
from tonlake.ingest.source.node.source import NodeSource
from tonlake.ingest.source.origin import Origin
from tonlake.ingest.span import Span
from tonlake.lake import errors as lake_errors
from tonlake.lake.account import MASTERCHAIN, BlockPlace, is_passed
from tonlake.lake.errors import LakeError, NetworkMismatch, UndoRefused
from tonlake.lake.log.following import (
    Following,
    read_following,
    remove_confirmed,
    write_confirmed,
    write_following,
)
from tonlake.lake.log.state import LogReader, LogState
from tonlake.lake.maintenance.orphan import Sweeper
from tonlake.lake.maintenance.removal import undo_after
from tonlake.lake.maintenance.schedule import Maintenance
from tonlake.lake.system import return_memory

StartWorkers = Callable[[Span], AbstractContextManager[Workers | None]]

WRITE_EVERY_S = 0.5
"""Seconds between writes of the status while nothing changes."""

RIVAL_S = 60.0
"""Seconds for which another follower of the same lake is reported after its last status."""


class FollowerStatus:
    """Keeps the status file of one follower up to date."""

    def __init__(self, lake_dir: Path) -> None:
        self._lake_dir = lake_dir
        self.problem: str | None = None
        self._note = Following(os.getpid(), 0.0)
        self._is_new = True
        self._written_s = 0.0
        self._rival: int | None = None
        self._rival_seen_s = 0.0

    def observe(
        self, node_last: int, theirs: McHead | None, lake_last: int, ours: McHead | None
    ) -> None:
        """Record the newest blocks of the node and of the lake."""
        self._note = msgspec.structs.replace(
            self._note,
            node_last_mc_seqno=node_last,
            lake_last_mc_seqno=lake_last,
            node_last_utime=None if theirs is None else theirs.gen_utime,
            lake_last_utime=None if ours is None else ours.gen_utime,
        )
        self._is_new = True

    def find_rival(self) -> str | None:
        """Return a message about another process that follows into the same lake; None if none."""
        now_s = time.monotonic()
        found = read_following(self._lake_dir) if self._written_s else None
        if found is not None and found.looked_at > self._note.looked_at:
            self._rival, self._rival_seen_s = found.pid, now_s
        elif now_s - self._rival_seen_s > RIVAL_S:
            self._rival = None
        if self._rival is None:
            return None
        name = f"another follower (process {self._rival})"
        return f"{name} adds the same blocks to this lake: stop one of the two"

    def write(self, problem: str | None, *, has_looked: bool = True, stopped: bool = False) -> None:
        """Write the status if it is due; after a failed poll the time of the last one is kept."""
        now_s = time.monotonic()
        is_due = self._is_new or stopped or problem != self.problem
        if not is_due and now_s - self._written_s < WRITE_EVERY_S:
            return
        self.problem = problem
        looked_at = time.time() if has_looked else self._note.looked_at
        self._note = msgspec.structs.replace(
            self._note, looked_at=looked_at, problem=problem, stopped=stopped
        )
        if self._lake_dir.is_dir():
            write_following(self._lake_dir, self._note)
            self._is_new, self._written_s = False, now_s


_READ_BYTES = 1 << 16


class Wakeup:
    """Waits for events or a timeout; close it after use."""

    def __init__(self, pipe: str, take: Callable[[bytes], None] = lambda _events: None) -> None:
        """Use the node's pipe, which may be replaced, or none; ``take`` receives its bytes."""
        self._take = take
        self._path = Path(pipe) if pipe else None
        self._pipe: int | None = None

    def close(self) -> None:
        """Close the pipe."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def wait(self, seconds: float) -> None:
        """Return when the node writes an event, or after ``seconds``."""
        is_same = False
        with suppress(OSError):
            if self._pipe is not None and self._path is not None:
                is_same = os.path.samestat(self._path.stat(), os.fstat(self._pipe))
        if not is_same:
            self.close()
            self._open()
        if self._pipe is None:
            time.sleep(seconds)
            return
        if select.select([self._pipe], [], [], seconds)[0]:
            # Drain the pipe: one poll of the node covers all events.
            with suppress(BlockingIOError):
                while len(events := os.read(self._pipe, _READ_BYTES)) == _READ_BYTES:
                    self._take(events)
                self._take(events)

    def _open(self) -> None:
        """Open the pipe, if any; for writing, too, else a close by the node ends every wait."""
        if self._path is None:
            return
        with suppress(OSError):
            if stat.S_ISFIFO(self._path.stat().st_mode):
                self._pipe = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


HEAL_S = 600
"""Seconds between attempts to fill holes while following."""

NEAR_MC_BLOCKS = 100
"""An unreadable block is waited for only if it is one of this many newest blocks of the node."""

MANY_MC_BLOCKS = 500
"""Maintenance is due after a span of this many masterchain blocks."""

MAX_BEHIND = 1_024
"""Commits since running maintenance began after which no more are made until it ends: else files
grow without bound on a machine that leaves it no time."""

PACK_ROWS = 1_000
"""Commits with at most this many rows in each table become one file until maintenance."""

SLOWEST_S = 1.0
"""Longest pause in seconds between failing steps."""


class Follower:
    """Follows one node into one lake, step by step in one thread."""

    def __init__(
        self,
        open_source: Callable[[], BlockSource],
        lake_dir: Path,
        settings: IngestSections,
        *,
        notify: Callable[[str], None],
        on_report: Callable[[IngestReport], None] = lambda _report: None,
        start_workers: StartWorkers = lambda _span: nullcontext(),
    ) -> None:
        """Open nothing; ``open_source`` is called again if the node's files could not be read.

        ``notify`` receives lines of text for the operator, ``on_report`` the report of every step
        that made commits. ``start_workers`` starts as many workers as a span is worth.
        """
        self._start_workers = start_workers
        self._open_source = open_source
        self._lake_dir = lake_dir
        self._settings = settings
        self._notify = notify
        self._on_report = on_report
        self._source: BlockSource | None = None
        self._pipeline: Pipeline | None = None
        self._maintenance = Maintenance(
            lake_dir, settings.lake, lambda why: notify(f"maintenance failed: {why}")
        )
        self._seen: tuple[int, McHead | None] | None = None
        self._stuck: tuple[int, float] | None = None
        self._shorter_since_s: float | None = None
        self._healed_s = time.monotonic()
        self._status = FollowerStatus(lake_dir)
        self._signed = SignedBlocks(lake_dir, notify)
        self._wakeup = Wakeup(settings.follow.event_pipe, self._signed.note)
        self._log = LogReader(lake_dir)
        self._sweeper = Sweeper(lake_dir, settings.lake, self._log)
        self._newest: McHead | None = None
        self._has_lake = False
        self._failures = 0

    def close(self, problem: str | None = None) -> None:
        """Close the node and the lake, and write the final status."""
        self._close_source()
        self._wakeup.close()
        self._maintenance.close()
        self._status.write(problem, has_looked=problem is None, stopped=problem is None)

    def run(self) -> NoReturn:
        """Run steps until one raises."""
        while True:
            self._wakeup.wait(self.step())

    def step(self) -> float:
        """Poll the node once, handle changes, and return the seconds until the next step."""
        try:
            problem = self._advance()
        except (NetworkMismatch, SourceForeign, UndoRefused):
            raise
        except (lake_errors.RangeOverlap, lake_errors.CommitConflict):
            # The next step sees the commits of the other process.
            problem, has_looked = "another process adds the same blocks to this lake", True
        except (IngestError, LakeError, OSError) as error:
            if isinstance(error, SourceError | OSError):
                self._close_source()
            self._seen, problem, has_looked = None, f"{type(error).__name__}: {error}", False
        else:
            has_looked = problem is None
            if self._signed.has_blocks and self._source is not None:
                opening = partial(self._open_pipeline, self._source)
                self._signed.advance(self._source, self._log.read(), opening)
        self._failures = 0 if has_looked else self._failures + 1
        if has_looked:
            problem = self._status.find_rival() or problem
        if problem != self._status.problem:
            self._notify(problem or "recovered")
        self._status.write(problem, has_looked=has_looked)
        poll_s = self._settings.follow.poll_ms / 1000
        return min(SLOWEST_S, poll_s * 2 ** min(self._failures, 10)) if self._failures else poll_s

    def _advance(self) -> str | None:
        source = self._open()
        source.refresh()
        node_last = source.last_mc_seqno()
        state = self._log.read()
        if self._has_lake and not state.number:
            return f"{self._lake_dir} holds no lake any more: put it back, or restart to begin one"
        self._has_lake = bool(state.number)
        self._maintenance.count(0)
        if self._sweeper.sweep_if_due():
            return_memory()  # Many small commits leave the heap in pieces.
        if (behind := self._maintenance.behind) > MAX_BEHIND:
            return f"waits for maintenance: {behind:,} commits behind"
        head = source.find_head(node_last)
        if self._seen == (state.number, head) and self._stuck is None:
            if len(state.ranges) > 1 and time.monotonic() - self._healed_s > HEAL_S:
                self._heal(state)
            return None
        if state.ranges:
            problem, state = self._undo_foreign(source, state, node_last)
            if problem:
                return problem
        problem = self._ingest_new(source, state, node_last)
        state = self._log.read()
        last = state.ranges[-1][1] if state.ranges else 0
        self._seen = (state.number, head) if last >= node_last else None
        self._status.observe(node_last, head, last, self._find_newest(state))
        return problem

    def _undo_foreign(
        self, source: BlockSource, state: LogState, node_last: int
    ) -> tuple[str | None, LogState]:
        """Undo blocks not in the node's chain; return a problem, if any, and the new state."""
        newest = state.ranges[-1][1]
        most = self._settings.follow.undo_mc_blocks + 1
        head = self._find_newest(state)
        theirs = source.find_head(newest) if newest <= node_last else None
        common = newest
        if head is None or theirs is None or head.root_hash != theirs.root_hash:
            common = find_last_common(source, self._lake_dir, state, node_last, max_mc_blocks=most)
        if common >= newest:
            self._shorter_since_s = None
            return None, state
        now_s = time.monotonic()
        if common == node_last:
            # The node's chain is only shorter, as after a restore; it may grow again.
            self._shorter_since_s = self._shorter_since_s or now_s
            if now_s - self._shorter_since_s < self._settings.follow.shorter_ms / 1000:
                return f"the node's chain ends with {node_last}, the lake's with {newest}", state
        self._shorter_since_s = None
        self._undo(source, common)
        return None, self._log.read()

    def _undo(self, source: BlockSource, common: int) -> None:
        commit = undo_after(
            self._lake_dir,
            common,
            self._settings.lake,
            max_mc_blocks=self._settings.follow.undo_mc_blocks,
            source=source.describe(),
            reopen=lambda before, first: reopen_traces(self._lake_dir, before, first),
        )
        self._newest = None
        if commit is not None:
            self._close_pipeline()
            self._notify(
                f"masterchain blocks {commit.first_mc_seqno}..{commit.last_mc_seqno} undone by"
                f" commit {commit.number}: the node's chain differs after {common}"
            )

    def _ingest_new(self, source: BlockSource, state: LogState, node_last: int) -> str | None:
        first = state.ranges[-1][1] + 1 if state.ranges else source.first_mc_seqno()
        if first > node_last:
            self._stuck = None
            return None
        newest_old = node_last - NEAR_MC_BLOCKS
        if first <= newest_old:
            report = self._ingest_span(source, Span(first, newest_old), stop_at_hole=False)
            if report.commits:
                return None
            first = newest_old + 1  # The newest blocks do not wait for unavailable ones.
        # Whether to wait for an unreadable block rather than leave a hole.
        patient = (
            self._stuck is None
            or self._stuck[0] != first
            or time.monotonic() - self._stuck[1] < self._settings.follow.patience_ms / 1000
        )
        report = self._ingest_span(source, Span(first, node_last), stop_at_hole=patient)
        if report.stopped_at is None or not report.holes:
            self._stuck = None
            return None
        hole = report.holes[0]
        gone = hole.kind == BlockPruned.__name__
        if self._stuck is None or self._stuck[0] != hole.mc_seqno:
            self._stuck = hole.mc_seqno, time.monotonic()
            if gone:
                self._close_source()  # The folder may have been away for a moment: reopen it.
        elif gone:
            # The node will not write a deleted block again.
            self._stuck = hole.mc_seqno, float("-inf")
        return f"masterchain block {hole.mc_seqno} cannot be read: {hole.kind}: {hole.reason}"

    def _ingest_span(self, source: BlockSource, span: Span, *, stop_at_hole: bool) -> IngestReport:
        pipeline = self._open_pipeline(source)
        with self._start_workers(span) as workers:
            pipeline.workers = workers
            try:
                report = pipeline.bring(span, stop_at_hole=stop_at_hole)
            finally:
                pipeline.workers = None
        many = self._settings.lake.maintenance_commits if len(span) >= MANY_MC_BLOCKS else 0
        self._maintenance.count(max(report.commits, many))
        if report.commits:
            self._newest = pipeline.newest
            self._on_report(report)
        return report

    def _heal(self, state: LogState) -> None:
        span = Span(state.ranges[0][0], state.ranges[-1][1])
        report = self._open_pipeline(self._open()).bring(span)
        self._healed_s = time.monotonic()
        if report.commits:
            self._on_report(report)
            self._notify("holes were filled")

    def _open(self) -> BlockSource:
        if self._source is None:
            self._source = self._open_source()
            check_network(self._source, self._lake_dir, self._log.read())
        return self._source

    def _open_pipeline(self, source: BlockSource) -> Pipeline:
        if self._pipeline is None:
            self._pipeline = Pipeline(source, self._lake_dir, self._settings, log=self._log)
            if self._settings.lake.maintenance_commits:
                self._pipeline.pack_rows = PACK_ROWS
        return self._pipeline

    def _close_pipeline(self) -> None:
        if self._pipeline is not None:
            self._pipeline.close()
            self._pipeline = None

    def _close_source(self) -> None:
        self._close_pipeline()
        if self._source is not None:
            with suppress(SourceError, OSError):
                self._source.close()
            self._source = None

    def _find_newest(self, state: LogState) -> McHead | None:
        """Return the newest masterchain block of the lake; read it only if others committed it."""
        if not state.ranges:
            return None
        last = state.ranges[-1][1]
        if self._newest is None or self._newest.mc_seqno != last:
            self._newest = read_heads(self._lake_dir, state, (last, last)).get(last)
        return self._newest


def keep_following(
    origin: Origin,
    lake_dir: Path,
    settings: IngestSections,
    *,
    notify: Callable[[str], None],
    on_report: Callable[[IngestReport], None] = lambda _report: None,
) -> None:
    """Follow a node or a network until the process is interrupted, or the operator has to act."""
    follower = Follower(
        lambda: origin.open(settings),
        lake_dir,
        settings,
        notify=notify,
        on_report=on_report,
        start_workers=lambda span: start_workers(origin, lake_dir, settings, count_workers(span)),
    )
    problem: str | None = None
    try:
        follower.run()
    except (IngestError, LakeError) as error:
        problem = str(error)
        raise
    except KeyboardInterrupt:
        notify("stops as soon as maintenance is done; interrupt again to stop at once")
        raise
    finally:
        follower.close(problem)


MAX_BLOCKS = 64
"""Most signed blocks that are decoded; more wait for their masterchain block."""

MAX_EVENTS = 256
"""Most reported blocks that are waited for; of more, the first are forgotten."""

WAIT_S = 10.0
"""Seconds for which a reported block may be missing in the packages."""

_BLOCK_SIGNED = re.compile(
    b"(?=" + re.escape(tl.pack_constructor(tl.BLOCK_SIGNED)) + b"(.{80}))", re.DOTALL
)
"""An event; the one after a torn one may begin inside it."""


class SignedBlocks:
    """The signed blocks that the lake does not have yet."""

    def __init__(self, lake_dir: Path, notify: Callable[[str], None]) -> None:
        """Start without blocks; ``notify`` receives why blocks cannot be decoded."""
        self._lake_dir = lake_dir
        self._notify = notify
        self._tail = b""
        self._due: dict[BlockId, float] = {}
        """Blocks that were reported, but not yet read, and when."""
        self._held: dict[BlockId, RawBlock] = {}
        self._commit = 0
        remove_confirmed(lake_dir)

    def note(self, events: bytes) -> None:
        """Take bytes of the pipe; events of other kinds, and torn ones, are passed over."""
        data = self._tail + events
        rest = 0
        for match in _BLOCK_SIGNED.finditer(data):
            block_id = tl.TlReader(match[1], "db.event.blockSigned").read_block_id()
            rest = match.start() + 1
            if block_id.workchain != MASTERCHAIN and block_id not in self._held:
                self._due[block_id] = time.monotonic()
        self._tail = data[max(rest, len(data) - tl.EVENT_BYTES + 1) :]
        for block_id in list(self._due)[:-MAX_EVENTS]:
            del self._due[block_id]

    @property
    def has_blocks(self) -> bool:
        """Whether there is anything to do."""
        return bool(self._due or self._held)

    def advance(self, source: BlockSource, state: LogState, open_: Callable[[], Pipeline]) -> None:
        """Decode the blocks that can be decoded now, and forget those that the lake has passed."""
        is_same, self._commit = state.number == self._commit, state.number
        if not state.ranges or not isinstance(source, NodeSource) or (is_same and not self._due):
            return
        try:
            last = source.read_unchecked(state.ranges[-1][1])
            if self._choose(source, last):
                rows = open_().derive_ahead(self._join(last))
                if rows:
                    write_confirmed(self._lake_dir, state.number, rows)
        except (IngestError, LakeError, OSError) as error:
            self._due, self._held = {}, {}
            self._notify(f"signed blocks cannot be decoded: {error}")
        if not self._held:
            remove_confirmed(self._lake_dir)

    def _choose(self, source: NodeSource, last: McBundle) -> bool:
        """Drop the blocks that ``last`` or an earlier block passed; return whether any is new."""
        tops = read_shard_tops(parse_boc(last.blocks[0].data, check_crc=False))
        passed = [_place(top) for top in tops]
        for one in [*self._held, *self._due]:
            if is_passed(_place(one), passed):
                self._held.pop(one, None)
                self._due.pop(one, None)
        known = {top.id for top in tops}
        found = [
            self._read(source, one, known, last.mc_seqno)
            for one in sorted(self._due, key=attrgetter("seqno"))
        ]
        return any(found)

    def _read(self, source: NodeSource, one: BlockId, tops: set[BlockId], mc_seqno: int) -> bool:
        """Read a reported block; return whether the blocks that it needs are known."""
        if len(self._held) >= MAX_BLOCKS:
            return False
        if _place(one) in map(_place, self._held):
            del self._due[one]  # of two forks the first is shown: rows of both are no chain
            return False
        try:
            block = source.find_signed(one)
        except BlockCorrupt as error:
            self._notify(f"a signed block cannot be read: {error}")
            del self._due[one]
            return False
        if block is None:
            if time.monotonic() - self._due[one] > WAIT_S:
                del self._due[one]
            return False
        header = read_header(parse_boc(block.data, check_crc=False))
        if header.master_ref_seqno > mc_seqno or not {*header.previous} <= tops | self._held.keys():
            return False
        del self._due[one]
        self._held[one] = block
        return True

    def _join(self, last: McBundle) -> McBundle:
        """Return the blocks as those of the masterchain block after ``last``."""
        mark, blocks = last.mark, tuple(self._held[one] for one in sorted(self._held))
        if mark is not None and mark.version is not None:
            mark = KeyMark(last.mc_seqno, None)
        return McBundle(last.mc_seqno + 1, blocks, mark)


def _place(one: BlockId | ShardTop) -> BlockPlace:
    return one.workchain, one.shard, one.seqno
