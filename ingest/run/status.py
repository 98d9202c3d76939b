"""The status of a follower, written to the lake for ``tonlake status``."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import msgspec

from tonlake.lake.log.following import Following, read_following, write_following

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.ingest.blocks import McHead

WRITE_EVERY_S = 0.5
"""Seconds between writes of the status while nothing changes."""

RIVAL_S = 60.0
"""Seconds for which another follower of the same lake is reported after its last status."""


class FollowerStatus:
    """Keeps the status file of one follower up to date."""

    def __init__(self, lake_dir: Path) -> None:
        """Start without observations."""
        self._lake_dir = lake_dir
        self._note = Following(os.getpid(), 0.0)
        self._is_new = True
        self._written_s = 0.0
        self._rival: int | None = None
        self._rival_seen_s = 0.0

    @property
    def problem(self) -> str | None:
        """The last problem reported."""
        return self._note.problem

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
        """Return a message about another process that follows into the same lake; None if none.

        A status older than the first one of this process belongs to a finished process.
        """
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
        is_due = self._is_new or stopped or problem != self._note.problem
        if not is_due and now_s - self._written_s < WRITE_EVERY_S:
            return
        looked_at = time.time() if has_looked else self._note.looked_at
        self._note = msgspec.structs.replace(
            self._note, looked_at=looked_at, problem=problem, stopped=stopped
        )
        if self._lake_dir.is_dir():
            write_following(self._lake_dir, self._note)
            self._is_new, self._written_s = False, now_s
