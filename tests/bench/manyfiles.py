"""Benchmarks a lake of many files and commits: open, query of one day, commit, status.

    python -m tests.bench.manyfiles [--files N] [--commits N] [--lake FOLDER]

prints the figures as JSON. With ``--lake`` the lake is created there and reused the next time: only
a copy of hard links is changed. The cost in a new process is measured in one: ``--open LAKE``.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from tests.bench.blocks import ROOT
from tests.bench.chain import MIDDLING, Chain, ChainWriter, Moulds
from tests.bench.figure import Figure, at_most, percentile
from tests.bench.filegen import NETWORK, TABLES_MADE, ManyFiles, day_of, make_rows
from tests.patience import compose
from tonlake.ingest.run.follow import Follower
from tonlake.ingest.source.node.source import open_node
from tonlake.lake.commit.commit import commit_range
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.place import Place
from tonlake.lake.log.reader import LogReader
from tonlake.lake.log.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.lake.log.ranges import Range

AREA = "many files"
OPEN_MS, COMMIT_MS, STATUS_MS = 300, 10, 2_000
COMMITS, PROCESSES = 60, 5
FOLLOWED_BLOCKS, WARM_BLOCKS, FOLLOWED_SHARD_BLOCKS = 32, 8, 2
TABLE = "transactions"
_READ = re.compile(r"Total Files Read: (\d+)")
_OF_DAY = "select count(*), sum(total_fees) from transactions where day = $day"


class Opened(msgspec.Struct, frozen=True):
    """CPU and wall time of a process after its imports, and the number of files it read."""

    open_ms: float
    open_wall_ms: float
    query_ms: float
    query_wall_ms: float
    rows: int
    files_read: int
    files_of_day: int
    files_of_table: int


def measure_many_files(
    scratch: Path, files: int, commits: int, lake_dir: Path | None = None
) -> list[Figure]:
    """Create a lake of ``files`` and ``commits`` beside an almost empty one; return their costs."""
    many, few = scratch / "many.lake", scratch / "few.lake"
    source = lake_dir or scratch / "source.lake"
    if not source.exists():
        ManyFiles(files, commits).make(source)
    shutil.copytree(source, many, copy_function=os.link)
    ManyFiles(1, 1).make(few)
    size = f"{files:,} files, {commits:,} commits"
    followed = [_follow(scratch, folder) for folder in (many, few)]
    committed = _sample_commits(many, few)
    opened = [[_open(folder) for _ in range(PROCESSES)] for folder in (many, few)]
    return [
        _describe_more(f"a commit more than in an empty lake; {size}", *committed),
        _describe_more(f"a block that is followed, the same; {size}", *followed),
        _compare(f"open: log, snapshot, connection; {size}", opened, "open", OPEN_MS),
        _compare(f"first query of one day; {size}", opened, "query", None),
        _describe_query(size, opened[0][0]),
        _measure_status(size, many, few),
    ]


class Costs(NamedTuple):
    """Milliseconds of commits, in CPU and wall time."""

    cpu_ms: list[float]
    wall_ms: list[float]


def _follow(scratch: Path, lake_dir: Path) -> Costs:
    """Follow a node whose chain continues the generated lake, with all stages."""
    chain = Chain(Moulds(scratch), MIDDLING, FOLLOWED_SHARD_BLOCKS)
    chain.mc_seqno = LogReader(lake_dir).read().ranges[-1][1]
    node = scratch / "node-many"
    costs = Costs([], [])
    with closing(ChainWriter(node, chain)) as writer:
        writer.append()
        settings = compose(lake={"maintenance_commits": 0})
        follower = Follower(lambda: open_node(node), lake_dir, settings, notify=_fail)
        for _ in range(FOLLOWED_BLOCKS):
            cpu_s, wall_s = time.process_time(), time.perf_counter()
            follower.step()
            costs.cpu_ms.append((time.process_time() - cpu_s) * 1000)
            costs.wall_ms.append((time.perf_counter() - wall_s) * 1000)
            writer.append()
        follower.close()
    shutil.rmtree(node)
    return Costs(costs.cpu_ms[WARM_BLOCKS:], costs.wall_ms[WARM_BLOCKS:])


def _fail(problem: str) -> None:
    raise RuntimeError(f"the chain does not go on where the lake ends: {problem}")


def _sample_commits(many: Path, few: Path) -> tuple[Costs, Costs]:
    """Commit one block to both lakes in turn, again and again."""
    logs = [LogReader(many), LogReader(few)]
    costs = Costs([], []), Costs([], [])
    for _ in range(COMMITS):
        for log, cost in zip(logs, costs, strict=True):
            cpu_s, wall_s = _commit_next(log)
            cost.cpu_ms.append(cpu_s * 1000)
            cost.wall_ms.append(wall_s * 1000)
    return costs


def _commit_next(log: LogReader) -> tuple[float, float]:
    """Commit the next block in every table, and return the seconds of CPU and of wall time."""
    state = log.read()
    seqno = state.ranges[-1][1] + 1
    place = state.number
    at = Place(seqno, seqno, day_of(place))
    rows = {name: make_rows(name, at, place) for name in TABLES_MADE}
    mc_range: Range = (at.first, at.last)
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    commit_range(
        log.lake_dir,
        rows,
        first_mc_seqno=mc_range[0],
        last_mc_seqno=mc_range[1],
        day=at.day,
        source={"kind": "generated"},
        network=NETWORK,
        log=log,
    )
    return time.process_time() - cpu_s, time.perf_counter() - wall_s


def _describe_more(name: str, many: Costs, few: Costs) -> Figure:
    return Figure(
        area=AREA,
        name=name,
        unit="ms",
        value=percentile(many.cpu_ms, 0.5) - percentile(few.cpu_ms, 0.5),
        p99=percentile(many.cpu_ms, 0.99) - percentile(few.cpu_ms, 0.99),
        wall=percentile(many.wall_ms, 0.5) - percentile(few.wall_ms, 0.5),
        targets={"value": at_most(COMMIT_MS)},
        note=f"{percentile(many.cpu_ms, 0.5):.1f} ms, and {percentile(few.cpu_ms, 0.5):.1f} ms",
    )


def _open(lake_dir: Path) -> Opened:
    """Open a lake in a new process."""
    command = [sys.executable, "-m", "tests.bench.manyfiles", "--open", str(lake_dir)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return msgspec.json.decode(done.stdout, type=Opened)


def open_here(lake_dir: Path) -> Opened:
    """Open a lake and query one of its days, with imports already done."""
    began = time.process_time(), time.perf_counter()
    snapshot = Snapshot(lake_dir, LogReader(lake_dir).read())
    connection = connect(snapshot)
    opened = time.process_time(), time.perf_counter()
    files = snapshot.files[TABLE]
    folder = files[len(files) // 2].path.rpartition("/")[0]
    parameters = {"day": folder.rpartition("=")[2]}
    ((rows, _fees),) = connection.execute(_OF_DAY, parameters).fetchall()
    answered = time.process_time(), time.perf_counter()
    plan = connection.execute(f"explain analyze {_OF_DAY}", parameters).fetchall()[0][1]
    return Opened(
        open_ms=(opened[0] - began[0]) * 1000,
        open_wall_ms=(opened[1] - began[1]) * 1000,
        query_ms=(answered[0] - opened[0]) * 1000,
        query_wall_ms=(answered[1] - opened[1]) * 1000,
        rows=rows,
        files_read=sum(map(int, _READ.findall(plan))),
        files_of_day=sum(file.path.startswith(f"{folder}/") for file in files),
        files_of_table=len(files),
    )


def _compare(name: str, opened: list[list[Opened]], field: str, max_ms: float | None) -> Figure:
    """Return a median time beside that of the almost empty lake."""
    many, few = ([getattr(one, f"{field}_ms") for one in group] for group in opened)
    walls, peer = ([getattr(one, f"{field}_wall_ms") for one in group] for group in opened)
    return Figure(
        area=AREA,
        name=name,
        unit="ms",
        value=percentile(many, 0.5),
        p99=max(many),
        wall=percentile(walls, 0.5),
        peer=percentile(few, 0.5),
        peer_wall=percentile(peer, 0.5),
        targets={} if max_ms is None else {"value": at_most(max_ms)},
        note="peer: an almost empty lake",
    )


def _describe_query(size: str, opened: Opened) -> Figure:
    return Figure(
        area=AREA,
        name=f"files read for one day; {size}",
        unit="files",
        value=opened.files_read,
        targets={"value": at_most(opened.files_of_day)},
        note=f"of {opened.files_of_table:,} files of the table",
    )


def _measure_status(size: str, many: Path, few: Path) -> Figure:
    """Measure a whole ``tonlake status`` process."""

    def show(lake_dir: Path) -> tuple[float, float]:
        began_s, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [str(Path(sys.executable).with_name("tonlake")), "status", "--lake"]
        subprocess.run([*command, str(lake_dir)], check=True, stdout=subprocess.DEVNULL)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        return cpu_s * 1000, (time.perf_counter() - began_s) * 1000

    costs = [
        Costs(*map(list, zip(*(show(folder) for _ in range(PROCESSES)), strict=True)))
        for folder in (many, few)
    ]
    return Figure(
        area=AREA,
        name=f"tonlake status, the process; {size}",
        unit="ms",
        value=percentile(costs[0].cpu_ms, 0.5),
        p99=max(costs[0].cpu_ms),
        wall=percentile(costs[0].wall_ms, 0.5),
        peer=percentile(costs[1].cpu_ms, 0.5),
        peer_wall=percentile(costs[1].wall_ms, 0.5),
        targets={"value": at_most(STATUS_MS)},
        note="peer: an almost empty lake",
    )


def _write_json(write: Callable[[bytes], object], body: object) -> None:
    write(msgspec.json.format(msgspec.json.encode(body)) + b"\n")


@click.command()
@click.option("--files", default=50_000, show_default=True, help="Live files.")
@click.option("--commits", default=20_000, show_default=True, help="Commits.")
@click.option(
    "--lake", type=click.Path(path_type=Path), help="Folder of the lake; created if missing."
)
@click.option(
    "--open",
    "opened",
    type=click.Path(path_type=Path),
    help="Only open this lake, and print the cost.",
)
def main(*, files: int, commits: int, lake: Path | None, opened: Path | None) -> None:
    """Measure a lake of many files, and print the figures as JSON."""
    write = sys.stdout.buffer.write
    if opened is not None:
        _write_json(write, open_here(opened))
        return
    beside = None if lake is None else lake.absolute().parent
    with tempfile.TemporaryDirectory(prefix="tonlake-bench-", dir=beside) as scratch:
        _write_json(write, measure_many_files(Path(scratch), files, commits, lake))


if __name__ == "__main__":
    main()
