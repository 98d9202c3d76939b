"""A lake: can it be read, is it whole, is it behind, is there room."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from tonlake.api.command.doctor.finding import Finding
from tonlake.lake.command.status import read_status
from tonlake.lake.duck.connection import name_root
from tonlake.lake.errors import LakeError, LakeMisplaced, LakeNotFound
from tonlake.lake.log.following import find_lateness
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_commit
from tonlake.lake.maintenance.verify import verify_lake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tonlake.api.settings import Settings
    from tonlake.lake.command.status import Status

FREE_BYTES = 5 << 30
MANY_FILES = 1000


def check_lake(lake_dir: Path, settings: Settings, *, full: bool) -> Iterator[Finding]:
    """Yield what concerns a lake; ``full`` compares every file with its digest."""
    try:
        name_root(lake_dir)
        snapshot = open_snapshot(lake_dir, check_digests=False)
        status = read_status(snapshot, read_commit(lake_dir, snapshot.number)[0])
    except LakeNotFound as error:
        yield Finding("lake", "problem", str(error), "tonlake ingest --node DIR --lake DIR")
        return
    except LakeMisplaced as error:
        yield Finding("lake", "problem", str(error), "mv DIR OTHER, and name that in --lake")
        return
    except (LakeError, OSError) as error:
        advice = "tonlake verify names all damage; restore the file, or ingest anew"
        yield Finding("lake", "problem", str(error), advice)
        return
    text = f"masterchain blocks {status.first_mc_seqno}..{status.last_mc_seqno}, "
    text += f"{status.bytes:,} bytes, {status.snapshot:,} commits"
    yield Finding("lake", "ok", text)
    yield from _check_files(lake_dir, full=full)
    yield from _check_state(status, settings)
    yield from _check_room(lake_dir)


def _check_files(lake_dir: Path, *, full: bool) -> Iterator[Finding]:
    """Yield damage: of digests, or of names and sizes alone."""
    if full:
        report = verify_lake(lake_dir)
        damage = [f"{one.file}: {one.reason}" for one in report.damage]
    else:
        snapshot = open_snapshot(lake_dir, check_digests=False)
        damage = []
        for file in (file for files in snapshot.files.values() for file in files):
            path = lake_dir / file.path
            if not path.is_file():
                damage.append(f"{file.path}: it is missing")
            elif path.stat().st_size != file.bytes:
                damage.append(f"{file.path}: it has another size than committed")
    if damage:
        advice = "restore the file from a copy, or ingest into a new folder"
        yield Finding("files", "problem", f"{len(damage)} damaged: {damage[0]}", advice)
    else:
        text = "every digest is right" if full else "all there, sizes are right (--full: digests)"
        yield Finding("files", "ok", text)


def _check_state(status: Status, settings: Settings) -> Iterator[Finding]:
    if status.holes:
        shown = ", ".join(f"{first}..{last}" for first, last in status.holes[:3])
        advice = "tonlake ingest with --range over the hole, from a node that has the blocks"
        yield Finding("holes", "warning", f"{len(status.holes)}: {shown}", advice)
    else:
        yield Finding("holes", "ok", "none")
    if status.lookups.rows_missing > settings.lake.index_memory_rows:
        text = f"{status.lookups.rows_missing:,} transactions are not indexed"
        yield Finding("index", "warning", text, "tonlake rebuild index --lake DIR")
    files = sum(table.files for table in status.tables.values())
    if files > MANY_FILES:
        text = f"{files:,} files make queries slow"
        yield Finding("small files", "warning", text, "tonlake compact --lake DIR")
    late = find_lateness(status.lag, settings.follow.ready_lag_s, followed=False)
    if late is not None:
        advice = "look at the follower's log: tonlake ingest --follow"
        yield Finding("lag", "warning", late, advice)


def _check_room(lake_dir: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(lake_dir).free
    if free < FREE_BYTES:
        text = f"only {free:,} bytes are free"
        yield Finding("room", "warning", text, "make room; a commit that finds none is not made")
    else:
        yield Finding("room", "ok", f"{free:,} bytes are free")
    if not os.access(lake_dir, os.W_OK):
        advice = "fine for serving; ingest needs another user, or other rights"
        yield Finding("rights", "warning", "this user cannot write into the lake", advice)
