"""Five hundred clients and ten commits a second, and the server killed in between."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import resource
import signal
import socket
import sys
import time
from contextlib import closing, suppress
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from api.stream.subscription import make_subscription, read_json_query
from ingest.node.source import open_node
from ingest.pipeline import ingest
from ingest.span import Span
from lake.settings import Settings
from tests.api.growth import Growth
from tests.api.stream.test_stream import list_events

if TYPE_CHECKING:
    from pathlib import Path

    from api.stream.event import Event

CLIENTS, COMMITS_PER_S, LAST_BLOCK = 500, 10, 60
GIVE_UP_S = 600
_ID = re.compile(rb"^id: (\S+)\n(data|event): ", re.MULTILINE)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def blocks(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo node in one commit for each masterchain block."""
    lake_dir = tmp_path_factory.mktemp("blocks")
    settings = Settings(mc_blocks_per_commit=1, mc_blocks_per_chunk=1, build_lookups=False)
    with closing(open_node(demo_node)) as source:
        ingest(source, lake_dir, Span(source.first_mc_seqno(), LAST_BLOCK), settings)
    return lake_dir


class Listener:
    """One client: it reads until it has all that it waits for, and comes back when cut off."""

    def __init__(self, asked: dict[str, Any], wanted: list[str]) -> None:
        """Take a subscription, and the ids that must come."""
        self.asked = asked
        self.wanted = wanted
        self.got: list[str] = []
        self.last = "1:0:0"
        self.seen_s: dict[int, float] = {}
        self.connections = 0
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
        self.connected.set()
        body = json.dumps(self.asked | {"last_event_id": self.last}).encode()
        writer.write(
            b"POST /api/streaming/v2/sse HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b"
            % (len(body), body)
        )
        rest = b""
        while len(self.got) < len(self.wanted) and (piece := await reader.read(1 << 16)):
            frames, mark, rest = (rest + piece).rpartition(b"\n\n")
            self._note(frames + mark)
        writer.close()

    def _note(self, text: bytes) -> None:
        for name, kind in _ID.findall(text):
            self.last = name.decode()
            if kind == b"data":
                self.got.append(self.last)
                self.seen_s.setdefault(int(self.last.split(":")[0]), time.monotonic())


async def start_server(lake_dir: Path, port: int) -> asyncio.subprocess.Process:
    start = "from api.main import main; main()"
    command = ("-c", start, "serve", "--lake", str(lake_dir), "--port", str(port))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    return process


async def show_all(growth: Growth, port: int, listeners: list[Listener]) -> dict[int, float]:
    """Show commits at their pace to all listeners; kill the server once, halfway."""
    shown_s: dict[int, float] = {}
    server = await start_server(growth.lake_dir, port)
    tasks = [asyncio.create_task(one.run(port)) for one in listeners]
    for one in listeners:
        await asyncio.wait_for(one.connected.wait(), GIVE_UP_S)
    start_s = time.monotonic()
    for count in range(growth.commits - growth.shown):
        if growth.shown == growth.commits // 2:
            server.send_signal(signal.SIGKILL)
            await server.wait()
            server = await start_server(growth.lake_dir, port)
        await asyncio.sleep(start_s + count / COMMITS_PER_S - time.monotonic())
        growth.show()
        shown_s[growth.shown] = time.monotonic()
    await asyncio.wait_for(asyncio.gather(*tasks), GIVE_UP_S)
    server.send_signal(signal.SIGTERM)
    await server.wait()
    return shown_s


def make_listeners(events: list[Event]) -> list[Listener]:
    """Return clients that ask for different things, and what each must be told."""
    rng = random.Random(7)  # noqa: S311 - no secret, but a seed
    accounts = sorted({account for event in events for account in event.accounts})
    asked: list[dict[str, Any]] = [{"types": ["transactions"]}, {"types": ["actions"]}]
    asked += [{}, {"types": ["trace"]}]
    asked += [{"addresses": rng.sample(accounts, 5)} for _ in range(40)]
    asked += [{"addresses": rng.sample(accounts, 20), "types": ["actions"]} for _ in range(56)]
    listeners = []
    for one in asked:
        wanted = make_subscription(read_json_query(one))
        ids = [str(event.cursor) for event in events if wanted.accepts(event)]
        listeners += [Listener(one, ids) for _ in range(CLIENTS // len(asked))]
    return listeners


def test_every_event_once_and_in_order(blocks: Path, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    growth = Growth(blocks, tmp_path / "lake")
    events = list_events(blocks, range(1, growth.commits + 1))
    growth.show(2)
    listeners = make_listeners(events)
    assert len(listeners) == CLIENTS
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    shown_s = asyncio.run(show_all(growth, port, listeners))
    wrong = [one.asked for one in listeners if one.got != one.wanted]
    assert wrong == []
    half = growth.commits // 2
    late_ms = [
        (seen_s - shown_s[commit]) * 1000
        for one in listeners
        for commit, seen_s in one.seen_s.items()
        if commit in shown_s and not half - 3 <= commit <= half + 30
    ]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures = {
        "clients": len(listeners),
        "commits": growth.commits,
        "events made": len(events),
        "events sent": sum(len(one.got) for one in listeners),
        "connections": sum(one.connections for one in listeners),
        "cpu of servers, s": round(used.ru_utime + used.ru_stime, 1),
        "largest memory, MiB": used.ru_maxrss >> 10,
        "median from commit to client, ms": round(median(late_ms)),
        "95 % of events within, ms": round(quantiles(late_ms, n=20)[-1]),
        "cores": os.cpu_count(),
    }
    sys.stdout.write(msgspec.json.encode(figures).decode() + "\n")
