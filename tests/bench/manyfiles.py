"""Benchmarks a lake of many files and commits: open, query of one day, commit, status.

The peer is an almost empty lake. ``python -m tests.bench.manyfiles LAKE`` prints the cost of
opening one in a new process, as JSON.
"""

import re
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb  # noqa: F401 - a database would import it when it is opened
import msgspec

from tests.bench.figure import Figure, at_most, percentile
from tests.lake.chain import commit_made
from tests.lake.rows import make_tables
from tests.made.blocks import ROOT
from tests.made.files import NETWORK, TABLES_MADE, ManyFiles, day_of
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import LogReader

OPEN_MS, COMMIT_MS, STATUS_MS = 300, 10, 2_000
COMMITS, PROCESSES = 60, 5
TABLE = "transactions"
_READ = re.compile(r"Total Files Read: (\d+)")
_OF_DAY = "select count(*), sum(total_fees) from transactions where day = $day"


class Opened(msgspec.Struct, frozen=True):
    """CPU milliseconds of a process after its imports, and the files that one day's query read."""

    open_ms: float
    query_ms: float
    files_read: int
    files_of_day: int


def measure_many_files(scratch: Path, files: int, commits: int) -> list[Figure]:
    """Create a lake of ``files`` and ``commits`` beside an almost empty one; return their costs."""
    many, few = scratch / "many.lake", scratch / "few.lake"
    ManyFiles(files, commits).make(many)
    ManyFiles(1, 1).make(few)
    area = f"many files: {files:,} files, {commits:,} commits"
    committed = _sample_commits([many, few])
    opened = [[open_lake(folder) for _ in range(PROCESSES)] for folder in (many, few)]
    opens, queries = (
        [[getattr(one, name) for one in group] for group in opened]
        for name in ("open_ms", "query_ms")
    )
    status = [[show_status(folder) for _ in range(PROCESSES)] for folder in (many, few)]
    one = opened[0][0]
    return [
        _compare(area, "a commit", committed, percentile(committed[1], 0.5) + COMMIT_MS),
        _compare(area, "open: log, snapshot, connection", opens, OPEN_MS),
        _compare(area, "first query of one day", queries, None),
        _compare(area, "tonlake status, the process", status, STATUS_MS),
        Figure(
            area=area,
            name="files read for one day",
            unit="files",
            value=one.files_read,
            targets={"value": at_most(one.files_of_day)},
        ),
    ]


def _compare(
    area: str, name: str, samples_ms: Sequence[Sequence[float]], max_ms: float | None
) -> Figure:
    """Return a median time beside that of the almost empty lake."""
    many, few = samples_ms
    return Figure(
        area=area,
        name=name,
        unit="ms",
        value=percentile(many, 0.5),
        p99=percentile(many, 0.99),
        peer=percentile(few, 0.5),
        targets={} if max_ms is None else {"value": at_most(max_ms)},
    )


def _sample_commits(lakes: Sequence[Path]) -> list[list[float]]:
    """Commit one block to each lake in turn, again and again; return CPU milliseconds."""
    logs = [LogReader(lake_dir) for lake_dir in lakes]
    costs_ms: list[list[float]] = [[] for _ in logs]
    for _ in range(COMMITS):
        for log, cost_ms in zip(logs, costs_ms, strict=True):
            cost_ms.append(_commit_next(log) * 1000)
    return costs_ms


def _commit_next(log: LogReader) -> float:
    """Commit the next block in every table, and return the seconds of CPU."""
    state = log.read()
    seqno = state.ranges[-1][1] + 1
    rows = make_tables(seqno, seqno, rows=1, names=TABLES_MADE)
    cpu_s = time.process_time()
    commit_made(
        log.lake_dir, seqno, seqno, rows, day=day_of(state.number), network=NETWORK, log=log
    )
    return time.process_time() - cpu_s


def open_lake(lake_dir: Path) -> Opened:
    """Open a lake in a new process."""
    command = [sys.executable, "-m", "tests.bench.manyfiles", str(lake_dir)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return msgspec.json.decode(done.stdout, type=Opened)


def open_here(lake_dir: Path) -> Opened:
    """Open a lake as the commands do, for a statement, with imports already done."""
    began_s = time.process_time()
    snapshot = Snapshot(lake_dir, LogReader(lake_dir).read())
    connection = connect(snapshot, statement=_OF_DAY)
    opened_s = time.process_time()
    files = snapshot.files[TABLE]
    folder = files[len(files) // 2].path.rpartition("/")[0]
    parameters = {"day": folder.rpartition("=")[2]}
    connection.execute(_OF_DAY, parameters).fetchall()
    answered_s = time.process_time()
    plan = connection.execute(f"explain analyze {_OF_DAY}", parameters).fetchall()[0][1]
    return Opened(
        open_ms=(opened_s - began_s) * 1000,
        query_ms=(answered_s - opened_s) * 1000,
        files_read=sum(map(int, _READ.findall(plan))),
        files_of_day=sum(file.path.startswith(f"{folder}/") for file in files),
    )


def show_status(lake_dir: Path) -> float:
    """Return the CPU milliseconds of a ``tonlake status`` process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(Path(sys.executable).with_name("tonlake")), "status", "--lake", str(lake_dir)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime) * 1000


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(open_here(Path(sys.argv[1]))) + b"\n")
