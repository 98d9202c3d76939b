"""Named points at which a test can kill the process, to prove that commits survive it.

``TONLAKE_CRASH_AT=name`` kills the process the first time it reaches the point, ``name:3`` the
third time.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

VARIABLE = "TONLAKE_CRASH_AT"

POINTS = (
    "commit.start",
    "file.created",
    "file.written",
    "file.synced",
    "file.renamed",
    "commit.files_renamed",
    "commit.folders_synced",
    "log.created",
    "log.written",
    "log.synced",
    "log.linked",
    "log.unlinked",
    "log.folder_synced",
    "checkpoint.created",
    "checkpoint.written",
    "checkpoint.synced",
    "checkpoint.renamed",
    "delta.created",
    "delta.written",
    "delta.synced",
    "delta.renamed",
    "segment.created",
    "segment.written",
    "segment.synced",
    "segment.renamed",
    "merge.created",
    "merge.written",
    "merge.synced",
    "merge.renamed",
    "compact.renamed",
    "compact.folders_synced",
    "prune.written",
    "prune.indexed",
    "sweep.removed",
    "pull.staged",
    "pull.copied",
    "pull.synced",
    "pull.adopted",
    "pull.filled",
)
"""Every point of this package, in the order in which a commit reaches them."""

_passes: Counter[str] = Counter()


def reach(point: str) -> None:
    """Mark the named point; die here with SIGKILL if the environment asks for it."""
    setting = os.environ.get(VARIABLE)
    if setting is None:
        return
    name, _, count = setting.partition(":")
    if name != point:
        return
    _passes[point] += 1
    if _passes[point] == int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)
