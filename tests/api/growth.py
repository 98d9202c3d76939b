"""A lake that grows commit by commit, served over real HTTP."""

import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from tests.patience import patient
from tonlake.api.app import create_app
from tonlake.api.http.server import StreamingServer
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.settings import Settings
from tonlake.api.stream.event import TYPES, Cursor, Event
from tonlake.api.stream.rendering import CommitRows, EventMaker
from tonlake.lake.log.state import LOG_FOLDER

WAIT_S = 60.0


class Growth:
    """A lake that receives the commits of another one, one at a time."""

    def __init__(self, whole: Path, lake_dir: Path) -> None:
        """Take the complete lake, and a folder for the growing one."""
        self.lake_dir = lake_dir
        self.commits = len([path for path in (whole / LOG_FOLDER).iterdir() if path.stem.isdigit()])
        self.shown = 0
        self._whole = whole
        shutil.copytree(whole, lake_dir, ignore=shutil.ignore_patterns("*.json"))

    def show(self, count: int = 1) -> None:
        """Add the next commits."""
        for _ in range(count):
            self.shown += 1
            name = f"{LOG_FOLDER}/{self.shown}.json"
            shutil.copy(self._whole / name, self.lake_dir / f"{name}.new")
            (self.lake_dir / f"{name}.new").rename(self.lake_dir / name)


def list_events(lake_dir: Path, commits: Iterable[int], *kinds: str) -> list[Event]:
    """Return all events of commits, by the code under test but without hub and server."""
    settings = Settings()
    rows, holder = CommitRows(lake_dir), SnapshotHolder(lake_dir, settings)
    maker = EventMaker(rows, holder, settings)
    found = [
        event
        for number in commits
        for chunk in rows.list_chunks(number)
        for kind in kinds or TYPES
        for event in maker.make(chunk, kind)
    ]
    holder.close()
    return sorted(found, key=lambda event: event.cursor or Cursor(0))


class Served:
    """A running server, and requests to it."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.socket_url = f"ws://127.0.0.1:{port}/api/streaming/v2/ws"

    @contextmanager
    def stream(self, last: str | None = None, **params: Any) -> "Iterator[Frames]":
        """Open a stream; the first frame, which confirms it, is consumed."""
        headers = {} if last is None else {"Last-Event-ID": last}
        url = f"{self.url}/api/streaming/v2/sse"
        with httpx.stream("GET", url, params=params, headers=headers, timeout=WAIT_S) as answer:
            assert answer.status_code == 200, answer.read()
            frames = Frames(answer)
            assert frames.next().name == "subscribed"
            yield frames


class Frame(msgspec.Struct):
    """One event as a client of server-sent events sees it."""

    id: str
    name: str
    data: Any


class Frames:
    """Reads events as browsers do."""

    def __init__(self, answer: httpx.Response) -> None:
        """Take a response whose body is read as it comes."""
        self._lines = answer.iter_lines()
        self.id = ""

    def next(self) -> Frame:
        """Return the next event; raise StopIteration where the server has ended the stream."""
        name, data = "message", ""
        while True:
            line = next(self._lines)
            key, _, value = line.partition(": ")
            if key == "id":
                self.id = value
            elif key == "event":
                name = value
            elif key == "data":
                data = value
            elif not line and data:
                return Frame(self.id, name, msgspec.json.decode(data))

    def read(self) -> Any:
        """Return the data of the next event."""
        return self.next().data

    def take(self, count: int) -> list[Frame]:
        return [self.next() for _ in range(count)]


@contextmanager
def serve(lake_dir: Path, **settings: Any) -> Iterator[Served]:
    """Serve a lake on a free port until the block ends."""
    app = create_app(lake_dir, patient(**settings))
    server = StreamingServer(app, app.state.end_streams, app.state.connections)
    server.config.port = 0
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        thread.join(0.01)
    try:
        yield Served(server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(WAIT_S)
        assert not thread.is_alive(), "the server does not stop while there are streams"
