"""What the service and the process that runs a statement say to each other."""

from __future__ import annotations

import msgspec

from tonlake.api.sql.sandbox import Bounds


class Damaged(msgspec.Struct, frozen=True):
    """A data file that is not to be read, and why."""

    file: str
    reason: str


class Job(msgspec.Struct, frozen=True):
    """One statement, the snapshot that it is about, and what the answer may be like."""

    lake_dir: str
    snapshot: int
    damaged: tuple[Damaged, ...]
    query: str
    form: str
    most_rows: int
    most_bytes: int
    memory_mib: int
    threads: int
    bounds: Bounds


class Head(msgspec.Struct, frozen=True):
    """What precedes an answer: its rows, and whether these are all; or what went wrong."""

    error: str | None = None
    rows: int = 0
    complete: bool = True


READY = b"ready\n"
"""The process holds its bounds; the statement's time begins."""
