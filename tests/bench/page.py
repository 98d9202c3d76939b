"""Benchmarks pages over HTTP: the server's CPU per request, under load on loopback."""

import os
import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import httpx

from tests.bench.arguments import Draw
from tests.bench.clock import cpu_clock_of
from tests.bench.figure import Figure, Target, at_most
from tests.commands import serving as run_service
from tests.made.blocks import ROOT
from tests.patience import LIMITS
from tonlake.api.settings import Settings

Page = tuple[str, str, dict[str, Target]]

CONNECTIONS = 8
WARM_UP_S = 2
COMPUTED_S = 3
"""Answers that take long are asked for longer, so that some come even beside other programs."""
PAGE_MS, SMALL_PER_S = 2.0, 5_000


@contextmanager
def serving(lake_dir: Path, cache_mib: int) -> Iterator[tuple[str, int]]:
    """Serve a lake as the product does; yield its address and the server's process id."""
    patience = {f"TONLAKE_HTTP_{name.upper()}": str(ms) for name, ms in LIMITS["http"].items()}
    environment = {**os.environ, **patience, "TONLAKE_HTTP_CACHE_MIB": str(cache_mib)}
    with run_service("--lake", lake_dir, cwd=ROOT, env=environment) as (address, server):
        yield address, server.pid


def list_pages(draw: Draw) -> list[Page]:
    """Return name, path and targets of the measured pages."""
    tx_hash = b64encode(draw.transactions[0], b"-_").decode()
    account = str(draw.hot[0])
    page = {"value": at_most(PAGE_MS)}
    # Requests per second on one core are the inverse of the CPU time of one.
    small = {"value": at_most(1000 / SMALL_PER_S)}
    return [
        ("masterchainInfo", "/api/v3/masterchainInfo", small),
        ("transaction by hash", f"/api/v3/transactions?hash={tx_hash}", {}),
        (
            "100 transactions of a hot account",
            f"/api/v3/transactions?account={account}&limit=100",
            page,
        ),
        (
            "100 transactions of a cold account",
            f"/api/v3/transactions?account={draw.cold[0]}&limit=100",
            page,
        ),
        ("state of an account", f"/api/v3/addressBook?address={account}", {}),
    ]


def measure_http(lake_dir: Path, draw: Draw, *, seconds: int) -> list[Figure]:
    """Load every page, cached and computed; return CPU of a request, and requests a second."""
    pages, again = list_pages(draw), Settings().http.cache_mib
    return [
        *_measure_pages(lake_dir, pages, seconds, "sent again", again),
        *_measure_pages(lake_dir, pages, max(seconds, COMPUTED_S), "computed", 0),
    ]


def _measure_pages(
    lake_dir: Path,
    pages: list[Page],
    seconds: int,
    what: str,
    cache_mib: int,
) -> list[Figure]:
    figures = []
    with serving(lake_dir, cache_mib) as (address, pid):
        for name, path, targets in pages:
            url = address + path
            size = len(httpx.get(url, timeout=60).content)
            load(url, min(WARM_UP_S, seconds))
            began_s = time.clock_gettime(cpu_clock_of(pid))
            requests, per_s = load(url, seconds)
            spent_s = time.clock_gettime(cpu_clock_of(pid)) - began_s
            figures.append(
                Figure(
                    area="HTTP, CPU in the server per request",
                    name=f"{name}, {size:,} bytes, {what}",
                    unit="ms",
                    value=spent_s / requests * 1000,
                    targets=targets,
                    note=f"{requests / spent_s:,.0f} requests/s/core; "
                    f"{per_s:,.0f}/s of wall time beside the load generator",
                )
            )
    return figures


def load(url: str, seconds: int) -> tuple[int, float]:
    """Send requests on several connections; return their number, and the rate per second."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        count = sum(pool.map(_ask_again_and_again, [url] * CONNECTIONS, [seconds] * CONNECTIONS))
    return count, count / seconds


def _ask_again_and_again(url: str, seconds: int) -> int:
    """Send one request after the other on one connection; return how many were answered."""
    address = httpx.URL(url)
    until_s, count = time.monotonic() + seconds, 0
    with closing(HTTPConnection(address.host, address.port, timeout=30)) as connection:
        while time.monotonic() < until_s:
            connection.request("GET", address.raw_path.decode())
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise ValueError(f"{url}: status {answer.status}")
            count += 1
    return count
