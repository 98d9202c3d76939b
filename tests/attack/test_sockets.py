"""Thousands of hostile sockets against a service that answers others: `make attack`."""

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.attack.crowd import Crowd, ask
from tests.commands import serving
from tonlake.lake.process import raise_file_limit

pytestmark = pytest.mark.attack

ATTACK = {"bodies": 1050, "heads": 3000, "readers": 450, "sockets": 1200}
LASTS_S = 40.0
P99_S, MAX_MIB = 0.5, 700
GONE_S, MAX_READERS_MIB, MAX_LEFT_MIB = 60, 600, 350
MANY = [f"127.0.{net}.{host}" for net in (1, 2) for host in range(1, 26)]
ONE = ["127.0.3.1"]
PATHS = ("/api/v3/masterchainInfo", "/api/v3/blocks?limit=5", "/api/v2/getMasterchainInfo")


class Server:
    """A service in a separate process."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        """Take the process and its port."""
        self.pid, self.port = process.pid, port
        self.peak_mib = 0.0

    def measure_mib(self) -> float:
        """Return the current memory of the process, and note the peak."""
        held_mib = float(psutil.Process(self.pid).memory_info().rss) / (1 << 20)
        self.peak_mib = max(self.peak_mib, held_mib)
        return held_mib


@pytest.fixture
def server(demo_lake: Path) -> Iterator[Server]:
    """Serve the demo lake with the default settings."""
    raise_file_limit()
    with serve(demo_lake) as found:
        yield found


@contextmanager
def serve(lake: Path) -> Iterator[Server]:
    """Serve a lake until the block ends."""
    with serving("--lake", lake) as (address, process):
        port = int(address.rpartition(":")[2])
        while ask(port, PATHS[0])[0] != 200:
            time.sleep(0.1)
        yield Server(process, port)


@contextmanager
def attacked(server: Server, sources: Sequence[str], **counts: int) -> Iterator[Crowd]:
    """Run a crowd in its own thread while the block runs."""
    crowd = Crowd(server.port, sources)
    stopped = threading.Event()

    def come() -> None:
        for _ in crowd.attack(**counts):
            if stopped.is_set():
                return

    thread = threading.Thread(target=come)
    thread.start()
    try:
        yield crowd
    finally:
        stopped.set()
        thread.join()
        crowd.close()


def probe(server: Server, source: str, lasts_s: float) -> tuple[list[int], float]:
    """Send requests repeatedly; return the statuses, and the 99th percentile of the seconds."""
    ends_s = time.monotonic() + lasts_s
    statuses: list[int] = []
    times_s: list[float] = []
    while time.monotonic() < ends_s:
        status, took_s = ask(server.port, PATHS[len(statuses) % len(PATHS)], source)
        statuses.append(status)
        times_s.append(took_s)
        server.measure_mib()
        time.sleep(0.02)
    return statuses, sorted(times_s)[len(times_s) * 99 // 100]


@pytest.mark.parametrize(
    ("sources", "source"), [(MANY, "127.0.0.1"), (ONE, "127.0.0.1"), (ONE, ONE[0])]
)
def test_others_are_answered_during_an_attack(
    server: Server, sources: list[str], source: str
) -> None:
    with attacked(server, sources, **ATTACK) as crowd:
        statuses, p99_s = probe(server, source, LASTS_S)
        opened, left = len(crowd.sockets), crowd.count_open()
    print(  # noqa: T201 - the figures of docs/reliability.md
        f"from {len(sources)} addresses, asked from {source}: {Counter(statuses)}, "
        f"p99 {p99_s * 1000:.0f} ms, {server.peak_mib:.0f} MiB; {left} of {opened} sockets left"
    )
    assert set(statuses) == {200}
    assert p99_s < P99_S
    assert server.peak_mib < MAX_MIB
    assert opened == sum(ATTACK.values())
    assert left < opened / 2  # WebSockets within the limits stay


PAUSE_S = 0.1
"""Between silent readers: on a fast machine all would have asked before one counts as stalled."""


def test_answers_that_are_not_read_take_bounded_memory(server: Server) -> None:
    """Each of 200 readers is answered before the next one asks: this takes most memory."""
    crowd = Crowd(server.port, MANY)
    statuses = []
    for _ in crowd.attack(readers=200):
        statuses.append(int(crowd.sockets[-1].recv(12).split()[1]))
        server.measure_mib()
        assert ask(server.port, PATHS[0])[0] == 200
        time.sleep(PAUSE_S)
    crowd.close()
    left_mib = wait_until_gone(server)
    print(f"{Counter(statuses)}, {server.peak_mib:.0f} MiB, then {left_mib:.0f}")  # noqa: T201
    assert server.peak_mib < MAX_READERS_MIB
    assert left_mib < MAX_LEFT_MIB
    assert statuses.count(200) > 50  # clients that do not read give way to others


def wait_until_gone(server: Server) -> float:
    """Return the memory of the process a minute after all clients are gone, in MiB."""
    time.sleep(GONE_S)
    return server.measure_mib()


@pytest.mark.long
@pytest.mark.parametrize("readers", [125, 250])
def test_silent_readers_take_little_memory_and_leave_little(server: Server, readers: int) -> None:
    """All ask for answers of 8 MB at once and read nothing; a minute later they are long gone."""
    with attacked(server, MANY, readers=readers) as crowd:
        ends_s = time.monotonic() + LASTS_S
        while time.monotonic() < ends_s:
            server.measure_mib()
            time.sleep(0.05)
        opened = len(crowd.sockets)
    left_mib = wait_until_gone(server)
    print(  # noqa: T201 - as above
        f"{opened} silent readers: {server.peak_mib:.0f} MiB, {left_mib:.0f} MiB after {GONE_S} s"
    )
    assert opened == readers
    assert server.peak_mib < MAX_READERS_MIB
    assert left_mib < MAX_LEFT_MIB
    assert ask(server.port, PATHS[0])[0] == 200
