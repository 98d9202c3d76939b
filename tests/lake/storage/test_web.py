"""Files of a web server: complete, interrupted, without ranges, refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lake.web import WebServer, serving_folder
from tonlake.lake.errors import StorageError
from tonlake.lake.storage import storage
from tonlake.lake.storage.storage import WebFolder

DATA = bytes(range(256)) * 40


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    monkeypatch.setattr(storage, "_PAUSE_S", 0.001)
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "file").write_bytes(DATA)
    with serving_folder(tmp_path) as started:
        yield started


def read(folder: WebFolder) -> bytes:
    return b"".join(folder.chunks("day=1/file"))


def test_a_file(server: WebServer) -> None:
    folder = WebFolder(server.url + "/", "secret")
    assert read(folder) == DATA
    assert server.asked == [("day=1/file", None, "secret")]
    folder.close()


@pytest.mark.parametrize("has_ranges", [True, False])
def test_an_answer_that_breaks_off_is_gone_on_with(server: WebServer, *, has_ranges: bool) -> None:
    server.has_ranges = has_ranges
    server.cut_after = 6000
    folder = WebFolder(server.url)
    if has_ranges:
        assert read(folder) == DATA
        assert [wanted for _, wanted, _ in server.asked] == [None, "bytes=6000-"]
        server.cut_after = None
        server.asked.clear()
        assert read(folder) == DATA
        assert len(server.asked) == 1
        folder.close()
        return
    # Without ranges each response begins at byte 0: one cut at the same byte never completes.
    with pytest.raises(StorageError, match=r"broke off \(day=1/file: "):
        read(folder)
    chunks = folder.chunks("day=1/file")
    begin = next(chunks)
    server.cut_after = None
    assert begin + b"".join(chunks) == DATA
    assert server.asked[-1][1] == "bytes=6000-"
    folder.close()


def test_a_client_serves_one_thread_at_a_time(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pool shared by threads closes connections in use: one request in 300 waited a minute."""
    stream, busy, shared = httpx.Client.stream, set[int](), []

    @contextmanager
    def spy(client: httpx.Client, *args: Any, **named: Any) -> Iterator[httpx.Response]:
        shared.append(id(client) in busy)
        busy.add(id(client))
        with stream(client, *args, **named) as answer:
            yield answer
        busy.discard(id(client))

    monkeypatch.setattr(httpx.Client, "stream", spy)
    folder = WebFolder(server.url)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: read(folder), range(100))) == {DATA}
    folder.close()
    assert shared == [False] * 100


def test_a_busy_server_is_asked_again(server: WebServer) -> None:
    folder = WebFolder(server.url)
    server.statuses = [503, 429, 429, 429, 429, 429, 429]
    assert read(folder) == DATA
    server.statuses = [503] * 5
    with pytest.raises(StorageError, match="it responds with 503"):
        read(folder)
    folder.close()


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (404, FileNotFoundError, "404"),
        (410, FileNotFoundError, "410"),
        (403, PermissionError, "403"),
        (401, StorageError, "API key: set .pull. key"),
        (500, StorageError, "responds with 500 for day=1/file"),
        (206, StorageError, "responds with 206"),
        (301, StorageError, "responds with 301"),
    ],
)
def test_refusals(server: WebServer, status: int, error: type[Exception], words: str) -> None:
    folder = WebFolder(server.url)
    server.statuses = [status]
    with pytest.raises(error, match=words):
        read(folder)
    folder.close()


def test_an_unreachable_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_PAUSE_S", 0.001)
    with serving_folder(tmp_path) as gone:
        url = gone.url
    folder = WebFolder(url)
    with pytest.raises(StorageError, match="cannot be reached"):
        read(folder)
    folder.close()


@pytest.mark.parametrize("url", ["http://", "https://host/x?y", "http://host/#x"])
def test_no_folder(url: str) -> None:
    with pytest.raises(StorageError, match="not the URL of a folder"):
        WebFolder(url)


def test_a_password_is_not_named() -> None:
    folder = WebFolder("https://user:secret@host/lake")
    assert folder.name == "https://host/lake"
    folder.close()
