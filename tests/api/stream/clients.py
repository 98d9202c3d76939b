"""Benchmarks clients of event streams during commits: event delay, and CPU of the server.

``python -m tests.api.stream.clients NODE_ARCHIVE --clients 500`` reveals the blocks of a node to a
server commit by commit; halfway the server is killed and restarted. Every client must receive every
event of its subscription once and in order, or the run fails.
"""

import argparse
import asyncio
import json
import os
import random
import re
import resource
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from statistics import quantiles
from typing import Any

import msgspec
import psutil

from tests.api.growth import Growth, list_events
from tests.conftest import unpack
from tests.ingest.whole import ingest_node
from tests.patience import compose
from tonlake.api.stream.event import Event, make_subscription, read_json_query

GIVE_UP_S = 600
AFTER_RESTART = 30
"""Commits after the server was killed whose delay is not counted: clients are catching up."""

_ID = re.compile(rb"^id: (\S+)\n(data|event): ", re.MULTILINE)


def make_lake(node: Path, lake_dir: Path, last_block: int) -> Path:
    """Ingest a node in one commit for each masterchain block."""
    settings = compose(
        ingest={"mc_blocks_per_commit": 1, "mc_blocks_per_chunk": 1}, lake={"build_index": False}
    )
    ingest_node(node, lake_dir, settings, last=last_block)
    return lake_dir


class Listener:
    """One client: it reads until all expected events have come, and reconnects when cut off."""

    def __init__(self, asked: dict[str, Any], wanted: list[str]) -> None:
        """Take a subscription, and the expected event ids."""
        self.asked = asked
        self.wanted = wanted
        self.got: list[str] = []
        self.last = "1:0:0"
        self.seen_s: dict[int, float] = {}
        self.connections = 0
        self.read_bytes = 0
        self.connected = asyncio.Event()

    async def run(self, port: int) -> None:
        """Read the stream to its end."""
        while len(self.got) < len(self.wanted):
            with suppress(OSError):
                await self._read(port)
            await asyncio.sleep(0.05)

    async def _read(self, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        self.connections += 1
        body = json.dumps(self.asked | {"last_event_id": self.last}).encode()
        writer.write(
            b"POST /api/streaming/v2/sse HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b"
            % (len(body), body)
        )
        rest = b""
        try:
            while len(self.got) < len(self.wanted) and (piece := await reader.read(1 << 16)):
                self.connected.set()
                self.read_bytes += len(piece)
                frames, mark, rest = (rest + piece).rpartition(b"\n\n")
                self._note(frames + mark)
        finally:
            writer.close()

    def _note(self, text: bytes) -> None:
        for name, kind in _ID.findall(text):
            self.last = name.decode()
            if kind == b"data":
                self.got.append(self.last)
                # Until the last event of a commit has come.
                self.seen_s[int(self.last.split(":")[0])] = time.monotonic()


def make_listeners(events: list[Event], count: int) -> list[Listener]:
    """Return clients that subscribe to all, to five accounts or to actions, and their events."""
    rng = random.Random(7)  # noqa: S311 - no secret, but a seed
    accounts = sorted({account for event in events for account in event.accounts})
    asked: list[dict[str, Any]] = [{"types": ["transactions"]}, {"types": ["actions"]}]
    asked += [{}, {"types": ["trace"]}]
    asked += [{"addresses": rng.sample(accounts, 5)} for _ in range(40)]
    asked += [{"addresses": rng.sample(accounts, 20), "types": ["actions"]} for _ in range(56)]
    listeners = []
    for place in range(count):
        one = asked[place % len(asked)]
        wanted = make_subscription(read_json_query(one))
        ids = [str(event.cursor) for event in events if wanted.accepts(event)]
        listeners.append(Listener(one, ids))
    return listeners


async def start_server(lake_dir: Path, port: int) -> asyncio.subprocess.Process:
    """Start a server, and wait until it listens."""
    start = "from tonlake.api.command.start import start; start()"
    command = ("-c", start, "serve", "--lake", str(lake_dir), "--port", str(port))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    return process


def read_cpu_s(process: asyncio.subprocess.Process) -> float:
    """Return the CPU time that a process has used."""
    spent = psutil.Process(process.pid).cpu_times()
    return float(spent.user + spent.system)


async def show_all(
    growth: Growth, port: int, listeners: list[Listener], *, rate: float, kill: bool
) -> tuple[dict[int, float], float]:
    """Reveal commits at their rate; return the time of each, and the CPU of the last server."""
    shown_s: dict[int, float] = {}
    server = await start_server(growth.lake_dir, port)
    tasks = [asyncio.create_task(one.run(port)) for one in listeners]
    for one in listeners:
        await asyncio.wait_for(one.connected.wait(), GIVE_UP_S)
    start_s = time.monotonic()
    start_cpu_s = read_cpu_s(server)
    for count in range(growth.commits - growth.shown):
        if kill and growth.shown == growth.commits // 2:
            server.send_signal(signal.SIGKILL)
            await server.wait()
            server = await start_server(growth.lake_dir, port)
        await asyncio.sleep(start_s + count / rate - time.monotonic())
        growth.show()
        shown_s[growth.shown] = time.monotonic()
    await asyncio.wait_for(asyncio.gather(*tasks), GIVE_UP_S)
    cpu_s = read_cpu_s(server) - (0 if kill else start_cpu_s)
    server.send_signal(signal.SIGTERM)
    await server.wait()
    return shown_s, cpu_s


def measure(
    blocks: Path, lake_dir: Path, count: int, *, rate: float = 10, kill: bool = True
) -> dict[str, Any]:
    """Run clients while commits are revealed; return figures, ``wrong`` among them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    growth = Growth(blocks, lake_dir)
    events = list_events(blocks, range(1, growth.commits + 1))
    growth.show(2)
    listeners = make_listeners(events, count)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    began_s = time.monotonic()
    own_s = time.process_time()
    shown_s, cpu_s = asyncio.run(show_all(growth, port, listeners, rate=rate, kill=kill))
    own_s = time.process_time() - own_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    late_ms = sorted(_list_delays(listeners, shown_s, growth.commits // 2 if kill else None))
    cuts = quantiles(late_ms, n=100)
    return {
        "clients": count,
        "commits": growth.commits,
        "commits a second": rate,
        "events made": len(events),
        "events sent": sum(len(one.got) for one in listeners),
        "MB sent": round(sum(one.read_bytes for one in listeners) / 1e6, 1),
        "connections": sum(one.connections for one in listeners),
        "wrong": [one.asked for one in listeners if one.got != one.wanted],
        "seconds": round(time.monotonic() - began_s, 1),
        "cpu of the last server, s": round(cpu_s, 2),
        "cpu of clients, s": round(own_s, 1),
        "largest memory, MiB": after.ru_maxrss >> 10,
        "from commit to client, median ms": round(cuts[49]),
        "from commit to client, p99 ms": round(cuts[98]),
        "cores": os.cpu_count(),
    }


def _list_delays(
    listeners: list[Listener], shown_s: dict[int, float], killed_at: int | None
) -> Iterator[float]:
    """Yield the delay of each commit's last event at each client, in milliseconds."""
    for one in listeners:
        for commit, seen_s in one.seen_s.items():
            is_near = killed_at is not None and -3 <= commit - killed_at <= AFTER_RESTART
            if commit in shown_s and not is_near:
                yield (seen_s - shown_s[commit]) * 1000


def main() -> None:
    """Measure and print a JSON line for each number of clients."""
    parser = argparse.ArgumentParser(prog="tests.api.stream.clients", description=__doc__)
    parser.add_argument("archive", type=Path, help="node database, .tar.zst")
    parser.add_argument("--clients", type=int, nargs="+", default=[100, 500])
    parser.add_argument("--rate", type=float, default=10, help="commits a second")
    parser.add_argument("--blocks", type=int, default=120, help="masterchain blocks")
    parser.add_argument("--calm", action="store_true", help="do not kill the server")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        node = unpack(options.archive, folder / "node")
        blocks = make_lake(node, folder / "blocks", options.blocks)
        for count in options.clients:
            lake_dir = folder / f"lake-{count}"
            figures = measure(blocks, lake_dir, count, rate=options.rate, kill=not options.calm)
            sys.stdout.write(msgspec.json.encode(figures).decode() + "\n")
            sys.stdout.flush()
            if figures["wrong"]:
                sys.exit(1)


if __name__ == "__main__":
    main()
