"""Copies a lake commit by commit, as the source grows."""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from tonlake.lake.commit.delta import publish
from tonlake.lake.copy.pull import Puller, PullReport, open_pull
from tonlake.lake.errors import LakeError, LakeFull, StorageError
from tonlake.lake.log.following import Following, write_following
from tonlake.lake.log.snapshot import WHOLE, Selection
from tonlake.lake.log.state import LogReader
from tonlake.lake.maintenance.orphan import Sweeper
from tonlake.lake.maintenance.own import Refresher
from tonlake.lake.process import name_child, serve_child, write_line
from tonlake.lake.settings import LakeSections

POLL_S = 0.2
"""Seconds between two requests for the next commit."""

CHECK_EVERY_S = 10.0
"""How often a source without new commits is checked for still having the newest one."""

PAUSE_S = 1.0
"""Pause after a source could not be reached."""


class PullFollower:
    """Copies every new commit of a source, and keeps the status file of the copy up to date."""

    def __init__(
        self,
        puller: Puller,
        settings: LakeSections,
        *,
        notify: Callable[[str], None],
        on_report: Callable[[PullReport], None] = lambda _report: None,
    ) -> None:
        """Take the puller; ``notify`` is called with problems, once each."""
        self._puller, self._settings = puller, settings
        self._notify, self._on_report = notify, on_report
        self._status = Following(os.getpid(), 0.0)
        self._checked_s = time.monotonic()
        self._sweeper = Sweeper(puller.lake_dir, settings.lake)
        self._unpublished = settings.lake.maintenance_commits
        self._tables = Refresher(puller.lake_dir, settings.lake, notify)

    def run(self, is_over: Callable[[], bool]) -> None:
        """Copy until ``is_over``; retry a source that cannot be reached."""
        try:
            while not is_over():
                pause_s = 0.0
                try:
                    if not self._step():
                        pause_s = POLL_S
                    self._write(problem=None)
                except (StorageError, LakeFull) as error:
                    pause_s = PAUSE_S
                    if str(error) != self._status.problem:
                        self._notify(str(error))
                    self._write(problem=str(error))
                self._tables.wake()
                time.sleep(pause_s)
        except LakeError as error:
            self._write(problem=str(error))
            raise
        finally:
            self._tables.close()
            self._write(problem=self._status.problem, stopped=self._status.problem is None)

    def _step(self) -> bool:
        """Copy new commits; return whether there were any."""
        report = self._puller.bring()
        now_s, last = time.monotonic(), report.ranges[-1][1]
        self._status = msgspec.structs.replace(
            self._status, looked_at=time.time(), node_last_mc_seqno=last, lake_last_mc_seqno=last
        )
        if report.commits:
            self._checked_s = now_s
            self._on_report(report)
            self._unpublished += report.commits
            if self._unpublished >= self._settings.lake.maintenance_commits:
                publish(LogReader(self._puller.lake_dir), self._settings.lake)
                self._unpublished = 0
            self._sweeper.sweep_if_due()
        elif now_s - self._checked_s > CHECK_EVERY_S:
            self._puller.check_newest()
            self._checked_s = now_s
        return bool(report.commits)

    def _write(self, *, problem: str | None, stopped: bool = False) -> None:
        self._status = msgspec.structs.replace(self._status, problem=problem, stopped=stopped)
        write_following(self._puller.lake_dir, self._status)


def follow_source(
    place: Path | str,
    lake_dir: Path,
    selection: Selection,
    settings: LakeSections,
    *,
    notify: Callable[[str], None],
    on_report: Callable[[PullReport], None] = lambda _report: None,
) -> None:
    """Copy every commit of a source until the process is interrupted."""
    while True:
        try:
            with open_pull(place, lake_dir, selection, key=settings.pull.key) as puller:
                follower = PullFollower(puller, settings, notify=notify, on_report=on_report)
                follower.run(lambda: False)
        except StorageError as error:  # before it could start
            notify(str(error))
            time.sleep(PAUSE_S)


def name_puller(place: str, lake_dir: Path, settings: LakeSections) -> list[str]:
    """Return the command line of a process that copies a lake for a server."""
    return name_child("tonlake.lake.copy.follow", LakeSections, settings, place, lake_dir)


def _follow(place: str, lake_dir: str, settings: LakeSections) -> None:
    follow_source(place, Path(lake_dir), WHOLE, settings, notify=partial(write_line, "pull"))


if __name__ == "__main__":
    serve_child("pull", LakeSections, _follow, OSError)
