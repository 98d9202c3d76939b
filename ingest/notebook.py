"""What a follower tells those who watch it, written down now and then."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import msgspec

from lake.following import Following, write_following

if TYPE_CHECKING:
    from pathlib import Path

    from ingest.source import McHead

WRITE_EVERY_S = 0.5
"""How often the note is written when nothing happens."""


class Notebook:
    """Keeps the note of one follower up to date."""

    def __init__(self, lake_dir: Path) -> None:
        """Begin with nothing seen."""
        self._lake_dir = lake_dir
        self._note = Following(os.getpid(), 0.0)
        self._is_new = True
        self._written_s = 0.0

    @property
    def problem(self) -> str | None:
        """What was in the follower's way when it was last told."""
        return self._note.problem

    def observe(
        self, node_last: int, theirs: McHead | None, lake_last: int, ours: McHead | None
    ) -> None:
        """Take the newest blocks of the node and of the lake."""
        self._note = msgspec.structs.replace(
            self._note,
            node_last_mc_seqno=node_last,
            lake_last_mc_seqno=lake_last,
            node_last_utime=None if theirs is None else theirs.gen_utime,
            lake_last_utime=None if ours is None else ours.gen_utime,
        )
        self._is_new = True

    def write(self, problem: str | None, *, stopped: bool = False) -> None:
        """Write the note if it is due; a look that failed is no look at the node."""
        now_s = time.monotonic()
        is_due = self._is_new or stopped or problem != self._note.problem
        if not is_due and now_s - self._written_s < WRITE_EVERY_S:
            return
        looked_at = self._note.looked_at if problem else time.time()
        self._note = msgspec.structs.replace(
            self._note, looked_at=looked_at, problem=problem, stopped=stopped
        )
        if self._lake_dir.is_dir():
            write_following(self._lake_dir, self._note)
            self._is_new, self._written_s = False, now_s
