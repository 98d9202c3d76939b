"""``make bench``: measures every performance figure of the product on this machine.

    python -m tests.bench [--quick] [--transactions N] [--only AREA ...] [--json FILE]

Everything happens in a scratch folder, which is removed together with all started processes however
the run ends.
"""

import os
import platform
import signal
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from rich.console import Console

from tests.bench.clock import measure_pace_ms
from tests.bench.decode import measure_decoders
from tests.bench.everything import (
    FAST_NODE,
    find_node,
    measure_day,
    measure_follow,
    measure_node,
    measure_small_blocks,
)
from tests.bench.figure import Figure, print_figures
from tests.bench.lookup import measure_lake
from tests.bench.manyfiles import measure_many_files
from tests.bench.postgres import BIN_DIRS, find_server
from tests.made.blocks import DATA, NETWORK_NODE

AREAS = ("decode", "ingest", "lookup", "http", "files")
DEFAULT_ROWS, QUICK_ROWS = 5_000_000, 200_000
FILES_AND_COMMITS, QUICK_FILES_AND_COMMITS = (50_000, 20_000), (2_000, 800)
CHAIN, QUICK_CHAIN = 100_000, 20_000
WORKERS, QUICK_WORKERS = (1, 2, 4), (1, 2)
WIDTH = 170


class Run(msgspec.Struct, frozen=True):
    """One run of the benchmark, as written by ``--json``."""

    time: str
    machine: str
    figures: list[Figure]
    paces_ms: list[float]
    """What the same loop took before each part, and after the last."""
    skipped: list[str] = []
    """Parts that need what this machine lacks, each with the reason."""


@click.command()
@click.option("--quick", is_flag=True, help="200,000 transactions, few samples: two minutes.")
@click.option(
    "--transactions",
    type=click.IntRange(min=1000),
    help="Transactions in the lake.  [default: 5 million]",
)
@click.option("--samples", type=click.IntRange(min=3), help="Samples of each kind of question.")
@click.option("--only", type=click.Choice(AREAS), multiple=True, help="Measure only these areas.")
@click.option("--no-peer", is_flag=True, help="Skip PostgreSQL.")
@click.option("--seed", default=1, show_default=True, help="Seed of the lake.")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Write the figures to this file."
)
@click.option("--scratch", type=click.Path(path_type=Path), help="Folder for temporary files.")
def main(
    *,
    quick: bool,
    transactions: int | None,
    samples: int | None,
    only: tuple[str, ...],
    no_peer: bool,
    seed: int,
    json_file: Path | None,
    scratch: Path | None,
) -> None:
    """Measure decode, ingest, look-ups beside PostgreSQL, HTTP and many files; print one table."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    areas = only or AREAS
    rows = transactions or (QUICK_ROWS if quick else DEFAULT_ROWS)
    samples = samples or (30 if quick else 300)
    console = Console(stderr=True)
    figures: list[Figure] = []
    paces_ms: list[float] = []
    with tempfile.TemporaryDirectory(prefix="tonlake-bench-", dir=scratch) as name:
        folder = Path(name)

        def add(what: str, measure: Callable[[], list[Figure]]) -> None:
            console.log(what)
            paces_ms.append(measure_pace_ms())
            figures.extend(measure())

        if "decode" in areas:
            add("decode", lambda: measure_decoders(folder, quick=quick))
        if "ingest" in areas:
            node = find_node(folder, QUICK_CHAIN if quick else CHAIN)
            workers = QUICK_WORKERS if quick else WORKERS
            add("ingest", lambda: measure_node(folder, node, workers, peer=not no_peer))
            add("follow", lambda: measure_follow(folder))
            if FAST_NODE.exists():
                add("small blocks", lambda: measure_small_blocks(folder))
            if not quick:
                add("a tenth of a day", lambda: measure_day(folder))
        if "files" in areas:
            sizes = QUICK_FILES_AND_COMMITS if quick else FILES_AND_COMMITS
            add("files", lambda: measure_many_files(folder, *sizes))
        if {"lookup", "http"} & set(areas):
            add(
                f"lake of {rows:,} transactions",
                lambda: measure_lake(
                    folder,
                    rows,
                    samples=samples,
                    seed=seed,
                    peer=not no_peer,
                    http="http" in areas,
                    seconds=1 if quick else 10,
                    budget_s=2 if quick else 20,
                ),
            )
    paces_ms.append(measure_pace_ms())
    at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    run = Run(at, describe_machine(), figures, paces_ms, list_skipped(no_peer=no_peer))
    if json_file:
        json_file.write_bytes(msgspec.json.encode(run))
    out = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    out.print(f"{run.machine}; {run.time}; times are CPU milliseconds unless called wall")
    out.print(f"between parts the same loop took {min(paces_ms):.1f} to {max(paces_ms):.1f} ms")
    for line in run.skipped:
        out.print(f"skipped: {line}")
    print_figures(figures, out)


def list_skipped(*, no_peer: bool) -> list[str]:
    """Return what is skipped or measured differently, each with the reason."""
    skipped = []
    if not NETWORK_NODE.exists():
        instead = "copies of a block of the demo node are ingested"
        skipped.append(f"a node of a genuine network: no file {NETWORK_NODE}; {instead}")
    if not DATA.is_dir():
        instead = "the demo node's blocks are measured instead"
        skipped.append(f"blocks of the main network: no folder {DATA}; {instead}")
    if no_peer:
        skipped.append("PostgreSQL beside the lake, units of its time: --no-peer")
    elif find_server() is None:
        skipped.append(f"PostgreSQL beside the lake, units of its time: none below {BIN_DIRS}")
    return skipped


def describe_machine() -> str:
    """Return processor, cores, kernel and Python: the environment of the figures."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
