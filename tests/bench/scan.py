"""Benchmarks scans beside PostgreSQL's binary COPY of the same rows, with the service's indexes.

    python -m tests.bench.scan [--lake LAKE | --transactions N] [--rounds N] [--scratch FOLDER]

Times are CPU: on one side of the server's process and the client's, on the other of the scan and
the Arrow stream that it writes. Memory is the peak of a process that scans a tenth, three tenths,
or all of the blocks. A lake with traces may be given; it is only read.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import psycopg
from rich.console import Console

import tonlake
from tests.bench.clock import cpu_clock_of
from tests.bench.figure import Figure, at_least, at_most, print_figures
from tests.bench.lakegen import make_lake
from tests.bench.peer.store import load_peer
from tests.bench.postgres import running_server
from tonlake.api.scan.frames import Mark, make_frames
from tonlake.api.settings import Settings
from tonlake.ingest.derive.stages import rebuild

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COLUMNS = ("mc_seqno", "tx_lt", "direction", "opcode", "value")
RARE_ROWS = (100, 1_000, 10_000)
"""Rare opcodes are those of the fewest messages, but of as many as this."""

RARE_SHARE, FULL_TIMES = 0.5, 10.0
SHARES = (0.1, 0.3, 1.0)
"""Of the masterchain blocks, that are scanned to compare how much memory it takes."""

MAX_GROWTH = 1.1
"""Peak of a scan of all blocks, to that of a tenth of them."""

KIB_PER_MIB = 1024


class Took(NamedTuple):
    """CPU seconds, rows and bytes."""

    cpu_s: float
    rows: int
    size: int


class Peak(NamedTuple):
    """Rows of a scan, and memory of its process in KiB: before it, and at the peak."""

    rows: int
    before_kib: int
    max_kib: int


def scan(lake: Any, where: dict[str, Any], stop: int | None = None) -> Took:
    """Scan messages as the service does, and discard the output."""
    began_s, rows, size = time.process_time(), 0, 0
    frames = None
    for batch in lake.scan("messages", where, columns=list(COLUMNS), stop=stop):
        table = batch.rows.arrow()
        frames = frames or make_frames("arrow", table.schema)
        size += len(frames.write(table, Mark(batch.cursor, batch.height)))
        rows += table.num_rows
    return Took(time.process_time() - began_s, rows, size)


def copy(peer: psycopg.Connection, where: str) -> Took:
    """Copy the same rows out of PostgreSQL, and discard them."""
    clock = cpu_clock_of(peer.info.backend_pid)
    began_s, own_s = time.clock_gettime(clock), time.process_time()
    size = 0
    rows = f"select {', '.join(COLUMNS)} from messages {where}"  # noqa: S608 - the bench's own
    statement = f"copy ({rows}) to stdout (format binary)"
    with peer.cursor().copy(statement.encode()) as stream:
        for piece in stream:
            size += len(piece)
    used_s = time.clock_gettime(clock) - began_s + time.process_time() - own_s
    count = peer.execute(f"select count(*) from messages {where}".encode()).fetchone()  # noqa: S608
    return Took(used_s, int(count[0]) if count else 0, size)


def find_rare(lake: Any, fewest: int) -> int | None:
    """Return the opcode with the fewest messages, of those with at least ``fewest``."""
    found = lake.sql(
        "select opcode from messages where opcode is not null group by all"
        " having count(*) >= $fewest order by count(*), opcode limit 1",
        fewest=fewest,
    ).fetchall()
    return int(found[0][0]) if found else None


def measure(lake_dir: Path, scratch: Path, rounds: int) -> list[Figure]:
    """Return the figures of both kinds of scans."""
    lake = tonlake.open(lake_dir)
    opcodes = [code for fewest in RARE_ROWS if (code := find_rare(lake, fewest)) is not None]
    transactions = lake.sql("select count(*) from transactions").fetchall()[0][0]
    area = f"scan, {transactions:,} transactions"
    with running_server(scratch) as address:
        load_peer(address, lake_dir, scratch, ("messages",))
        with psycopg.connect(address, autocommit=True) as peer:
            rare = [
                (
                    _repeat(rounds, partial(scan, lake, {"opcode": opcode})),
                    _repeat(rounds, partial(copy, peer, f"where opcode = {opcode}")),
                )
                for opcode in opcodes
            ]
            full = _repeat(rounds, lambda: scan(lake, {}))
            full_peer = _repeat(rounds, lambda: copy(peer, ""))
    for mine, other in (*rare, (full, full_peer)):
        if mine.rows != other.rows:
            raise ValueError(f"{mine.rows:,} rows are not the peer's {other.rows:,}")
    return [
        *(
            Figure(
                area=area,
                name=f"opcode of {mine.rows:,} messages",
                unit="ms",
                value=mine.cpu_s * 1000,
                peer=other.cpu_s * 1000,
                ratio=other.cpu_s / mine.cpu_s,
                targets={"ratio": at_least(1 / RARE_SHARE)},
            )
            for mine, other in rare
        ),
        Figure(
            area=area,
            name=f"five columns of {full.rows:,} messages",
            unit="rows/s/core",
            value=full.rows / full.cpu_s,
            peer=full_peer.rows / full_peer.cpu_s,
            ratio=full.rows / full.cpu_s / (full_peer.rows / full_peer.cpu_s),
            targets={"ratio": at_least(FULL_TIMES)},
        ),
        describe_memory(area, [measure_peak(lake_dir, share) for share in SHARES]),
    ]


def measure_peak(lake_dir: Path, share: float) -> Peak:
    """Scan the first blocks of a lake in a separate process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_scan_share, lake_dir, share).result()


def _scan_share(lake_dir: Path, share: float) -> Peak:
    lake = tonlake.open(lake_dir)
    first, last = lake.ranges[0][0], lake.ranges[-1][1]
    before_kib = _reset_peak()
    took = scan(lake, {}, stop=first + int((last - first) * share))
    return Peak(took.rows, before_kib, _read_kib("VmHWM"))


def describe_memory(area: str, peaks: Sequence[Peak]) -> Figure:
    """Return how the peak grows with the rows, and the memory a scan adds to an open lake."""
    each = (
        f"{peak.rows:,} rows {peak.max_kib / KIB_PER_MIB:,.0f} MiB"
        f" (+{(peak.max_kib - peak.before_kib) / KIB_PER_MIB:,.0f})"
        for peak in peaks
    )
    return Figure(
        area=area,
        name="peak memory of a full scan, to that of a tenth",
        unit="x",
        value=peaks[-1].max_kib / peaks[0].max_kib,
        targets={"value": at_most(MAX_GROWTH)},
        note=", ".join(each),
    )


def _reset_peak() -> int:
    """Reset the peak memory of this process, and return its current memory in KiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return _read_kib("VmRSS")


def _read_kib(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _repeat(rounds: int, work: Callable[[], Took]) -> Took:
    work()
    found = [work() for _ in range(rounds)]
    return found[0]._replace(cpu_s=median(one.cpu_s for one in found))


@click.command()
@click.option("--lake", "lake_dir", type=click.Path(exists=True, path_type=Path))
@click.option("--transactions", default=200_000, show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--scratch", type=click.Path(file_okay=False, path_type=Path))
def main(*, lake_dir: Path | None, transactions: int, rounds: int, scratch: Path | None) -> None:
    """Measure scans beside PostgreSQL."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    folder.chmod(0o711)
    try:
        if lake_dir is None:
            lake_dir = folder / "lake"
            make_lake(lake_dir, transactions=transactions, seed=1, lookups=True)
            rebuild("traces", lake_dir, Settings())
        figures = measure(lake_dir, folder, rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print_figures(figures, Console(width=170))
    if not all(figure.holds in (None, True) for figure in figures):
        sys.exit(1)


if __name__ == "__main__":
    main()
