"""Estimates time, space, requests and money for a network in object storage.

    python -m tests.bench.storage [--transactions BILLIONS] [--cores N] [prices]

Measured on this machine: CPU time of a transaction's ingest, bytes of one in the demo lake,
requests per gigabyte written and read. The rest is computed from these and the options. Default
prices are Amazon's list prices for us-east-1.
"""

from __future__ import annotations

import os
import platform
import tempfile
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import click
import httpx
import msgspec

from tests.bench.blocks import ROOT
from tests.bench.chain import LARGE, Chain, ChainWriter, Moulds
from tests.bench.ingest import WAYS, ingest_apart
from tests.bench.process import run_ingest
from tests.conftest import unpack
from tests.s3 import CREDENTIALS, S3Server
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_state
from tonlake.lake.storage.storage import open_storage

DERIVED_SAMPLE = 60_000
OBJECT_BYTES, CHUNK_BYTES = 1 << 27, 8 << 20
HOUR_S, DAY_S, GB = 3600, 86400, 10**9


class Measured(msgspec.Struct, frozen=True):
    """Figures measured on this machine; requests are those of a gigabyte in large files."""

    rows_cpu_s: float
    """CPU time of a transaction: rows and traces."""
    everything_cpu_s: float
    """The same, contracts and actions included."""
    bytes: float
    """Size of a transaction with its index."""
    writes_per_gb: float
    reads_per_gb: float


class Prices(msgspec.Struct, frozen=True):
    """US dollars."""

    gb_month: float
    thousand_writes: float
    thousand_reads: float
    core_hour: float


class Estimate(msgspec.Struct, frozen=True):
    """Requirements of a network; times assume perfectly parallel work."""

    terabytes: float
    rows_days: float
    everything_days: float
    transfer_hours: float
    storage_month: float
    upload_once: float
    import_once: float
    rows_once: float
    everything_once: float


def estimate(
    measured: Measured, prices: Prices, transactions: float, cores: int, gbit_s: float
) -> Estimate:
    """Return the estimate for a number of transactions, cores, and a network speed."""
    size_gb = transactions * measured.bytes / GB
    rows_s = transactions * measured.rows_cpu_s
    everything_s = transactions * measured.everything_cpu_s
    return Estimate(
        terabytes=size_gb / 1000,
        rows_days=rows_s / cores / DAY_S,
        everything_days=everything_s / cores / DAY_S,
        transfer_hours=size_gb * 8 / gbit_s / HOUR_S,
        storage_month=size_gb * prices.gb_month,
        upload_once=size_gb * measured.writes_per_gb * prices.thousand_writes / 1000,
        import_once=size_gb * measured.reads_per_gb * prices.thousand_reads / 1000,
        rows_once=rows_s / HOUR_S * prices.core_hour,
        everything_once=everything_s / HOUR_S * prices.core_hour,
    )


def measure(scratch: Path) -> Measured:
    """Ingest a chain and the demo node; write and read a large object."""
    node = scratch / "node"
    transactions = 0
    with closing(ChainWriter(node, Chain(Moulds(scratch), LARGE))) as writer:
        while transactions < DERIVED_SAMPLE:
            transactions += writer.append()
    rows = ingest_apart(WAYS[0], node, scratch / "lake")
    everything = run_ingest(node, scratch / "lake-everything")
    writes, reads = measure_requests()
    return Measured(
        rows_cpu_s=rows["cpu_s"] / transactions,
        everything_cpu_s=everything.cpu_s / transactions,
        bytes=measure_size(scratch),
        writes_per_gb=writes,
        reads_per_gb=reads,
    )


def measure_size(scratch: Path) -> float:
    """Return the bytes per transaction in the lake of the demo node, index included."""
    node = unpack(ROOT / "tests/data/node-demo/demo-node.tar.zst", scratch / "demo")
    lake = scratch / "demo-lake"
    run_ingest(node, lake)
    state = read_state(lake)
    files = open_snapshot(lake).files["transactions"]
    held = sum(file.bytes for file in (*state.files, *state.segments))
    return held / sum(file.rows for file in files)


def measure_requests() -> tuple[float, float]:
    """Return the requests per gigabyte written, and per gigabyte read."""
    with S3Server().running() as server:
        os.environ.update(CREDENTIALS | {"AWS_ENDPOINT_URL": server.endpoint})
        httpx.put(f"{server.endpoint}/cost").raise_for_status()
        storage = open_storage("s3://cost/object")
        chunk = os.urandom(CHUNK_BYTES)
        chunks = [chunk] * (OBJECT_BYTES // CHUNK_BYTES)
        server.requests.clear()
        storage.write("large", chunks, sha256(b"".join(chunks)).hexdigest())
        writes = len(server.requests)
        with storage.open("large") as stream:
            while stream.read(CHUNK_BYTES):
                pass
        reads = len(server.requests) - writes
    return writes * GB / OBJECT_BYTES, reads * GB / OBJECT_BYTES


@click.command()
@click.option("--transactions", default=5.0, show_default=True, help="Billions of transactions.")
@click.option("--cores", default=64, show_default=True)
@click.option("--gbit", default=1.0, show_default=True, help="Gigabits a second.")
@click.option(
    "--gb-month", default=0.023, show_default=True, help="Price in dollars, as all below."
)
@click.option("--thousand-writes", default=0.005, show_default=True)
@click.option("--thousand-reads", default=0.0004, show_default=True)
@click.option("--core-hour", default=0.05, show_default=True)
def main(*, transactions: float, cores: int, gbit: float, **prices: float) -> None:
    """Print what was measured, and the estimate."""
    with tempfile.TemporaryDirectory(prefix="tonlake-cost-") as scratch:
        measured = measure(Path(scratch))
    asked = msgspec.convert(prices, Prices)
    found = estimate(measured, asked, transactions * 1e9, cores, gbit)
    click.echo(f"{platform.machine()}, {os.cpu_count()} cores")
    for part in (measured, asked, found):
        for name, value in msgspec.structs.asdict(part).items():
            click.echo(f"{name:20} {value:,.6g}")


if __name__ == "__main__":
    main()
