"""Two files that a follower keeps beside the log: its status, and rows of blocks signed so far.

Neither is part of the lake: no commit lists them, and they may be missing or old. Only figures
depend on the first. The other has rows of blocks that no masterchain block has committed yet, an
Arrow stream for each table, one after the other; only streams of events read it.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.disk import unfinished
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import LogState

NOTE_FILE = "_follow.json"


class Following(msgspec.Struct, frozen=True, omit_defaults=True):
    """Status of a follower: times in Unix seconds, seqnos 0 without a block, why it is stuck."""

    pid: int
    looked_at: float
    node_last_mc_seqno: int = 0
    lake_last_mc_seqno: int = 0
    node_last_utime: int | None = None
    lake_last_utime: int | None = None
    problem: str | None = None
    stopped: bool = False


class Lag(msgspec.Struct, frozen=True):
    """How far a lake is behind its node.

    ``lag_s`` is the chain time between their newest blocks, plus the time since the follower
    looked; None without one. ``block_age_s`` is by this machine's clock. ``holes``: missing blocks.
    """

    last_mc_seqno: int
    holes: int
    lag_s: float | None = None
    block_age_s: float | None = None
    node_last_mc_seqno: int | None = None
    problem: str | None = None


def write_following(lake_dir: Path, following: Following) -> None:
    """Replace the status file; ignore a failed write, such as on a full disk."""
    with suppress(OSError), unfinished(lake_dir / NOTE_FILE) as path:
        path.write_bytes(msgspec.json.encode(following))


def read_following(lake_dir: Path) -> Following | None:
    """Return the status of the follower; None if there is none or it cannot be read."""
    try:
        found = msgspec.json.decode((lake_dir / NOTE_FILE).read_bytes(), type=Following)
    except (OSError, msgspec.DecodeError):
        return None
    return None if found.stopped else found


def measure_lag(lake_dir: Path, lake: Snapshot | LogState, now_s: float | None = None) -> Lag:
    """Return how far a lake is behind the node that its follower reads."""
    ranges = lake.ranges
    last = ranges[-1][1] if ranges else 0
    missing = last - ranges[0][0] + 1 - sum(end - start + 1 for start, end in ranges) if last else 0
    note = read_following(lake_dir)
    if note is None:
        return Lag(last, missing)
    now_s = time.time() if now_s is None else now_s
    behind_s = 0
    if note.node_last_mc_seqno > note.lake_last_mc_seqno:
        behind_s = (note.node_last_utime or 0) - (note.lake_last_utime or 0)
    # A clock that was set back must not make a lag negative.
    lag_s = max(0.0, behind_s) + max(0.0, now_s - note.looked_at)
    age_s = None if note.lake_last_utime is None else max(0.0, now_s - note.lake_last_utime)
    return Lag(
        last_mc_seqno=last,
        holes=missing,
        lag_s=round(lag_s, 3),
        block_age_s=None if age_s is None else round(age_s, 3),
        node_last_mc_seqno=note.node_last_mc_seqno,
        problem=note.problem,
    )


def find_lateness(lag: Lag, limit_s: int, *, followed: bool) -> str | None:
    """Return why a lake is too stale to serve, or None; ``followed``: a follower is expected."""
    if limit_s == 0:
        return None
    if lag.lag_s is None:
        return "the follower has not looked at the node yet" if followed else None
    if lag.lag_s <= limit_s:
        return None
    why = lag.problem or f"it has masterchain block {lag.last_mc_seqno} of {lag.node_last_mc_seqno}"
    return f"the lake is {lag.lag_s:.0f} s behind its node, and {limit_s} are allowed: {why}"


CONFIRMED_FILE = "_confirmed.arrow"
_TABLE, _COMMIT = b"table", b"commit"


class Confirmed(NamedTuple):
    """The rows of all signed blocks by table, as if they were committed after ``commit``."""

    commit: int
    tables: dict[str, pa.Table]


def write_confirmed(lake_dir: Path, commit: int, tables: Mapping[str, pa.Table]) -> None:
    """Replace the file."""
    with unfinished(lake_dir / CONFIRMED_FILE) as path, pa.OSFile(str(path), "wb") as sink:
        for name, rows in tables.items():
            about = {_TABLE: name.encode(), _COMMIT: str(commit).encode()}
            with pa.ipc.new_stream(sink, rows.schema.with_metadata(about)) as writer:
                writer.write_table(rows)


def remove_confirmed(lake_dir: Path) -> None:
    """Remove the file, if any."""
    (lake_dir / CONFIRMED_FILE).unlink(missing_ok=True)


def read_confirmed(lake_dir: Path) -> Confirmed:
    """Return the rows of the file; raise FileNotFoundError if there is none."""
    data = (lake_dir / CONFIRMED_FILE).read_bytes()
    source, commit, tables = pa.BufferReader(data), 0, dict[str, pa.Table]()
    try:
        while source.tell() < len(data):
            rows = pa.ipc.open_stream(source).read_all()
            commit = int(rows.schema.metadata[_COMMIT])
            tables[rows.schema.metadata[_TABLE].decode()] = rows
    except (pa.ArrowException, OSError) as error:
        raise LakeCorrupt(CONFIRMED_FILE, str(error)) from error
    return Confirmed(commit, tables)
