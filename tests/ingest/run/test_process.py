"""A process that runs functions: return values, exceptions, and how its death is reported."""

import gc
import os
import resource
import signal
import struct
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest

from tonlake.ingest.errors import BlockCorrupt, IngestError, SourceError
from tonlake.ingest.run.workers import SharedValue, TaskProcess, pack
from tonlake.lake.errors import LakeCorrupt, LakeFull

LARGE = 8 << 20


def begin() -> None:
    """Prepare nothing."""


def add(one: int, other: int) -> int:
    return one + other


def fail(kind: str) -> NoReturn:
    if kind == "plain":
        raise SourceError("no such folder")
    if kind == "lake":
        raise LakeCorrupt("blocks/x.parquet", "torn", "fetch another")
    raise BlockCorrupt("torn", block=None, file="x.pack", offset=4)


def fail_oddly() -> NoReturn:
    error = ValueError("odd")
    error.lock = threading.Lock()  # type: ignore[attr-defined]
    raise error


def make_large() -> bytes:
    return bytes(LARGE)


def fill_disk() -> pa.Table:
    """Return more than this process may write from now on."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
    return pa.table({"a": range(1 << 16)})


def die_while_answering() -> NoReturn:
    """Write the length of an answer and a part of it, and be killed."""
    [pipe] = [each for each in gc.get_objects() if isinstance(each, Connection)]
    os.write(pipe.fileno(), struct.pack("!i", LARGE) + b"a part")
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@pytest.fixture
def process(tmp_path: Path) -> Iterator[TaskProcess]:
    process = TaskProcess(tmp_path, begin)
    yield process
    process.stop()
    process.join()


def test_work_is_done_in_another_process(process: TaskProcess) -> None:
    assert process.run(add, 1, 2) == 3
    assert process.run(os.getpid) not in {0, os.getpid()}
    assert process.run(make_large) == bytes(LARGE)
    assert not process.is_busy


def test_what_work_raises_is_raised(process: TaskProcess) -> None:
    with pytest.raises(SourceError, match="no such folder"):
        process.run(fail, "plain")
    with pytest.raises(BlockCorrupt, match="torn") as block:
        process.run(fail, "block")
    assert block.value.offset == 4
    with pytest.raises(LakeCorrupt, match=r"x\.parquet: torn; fetch another") as lake:
        process.run(fail, "lake")
    assert lake.value.file == "blocks/x.parquet"
    with pytest.raises(RuntimeError, match="ValueError: odd"):
        process.run(fail_oddly)
    assert process.run(add, 1, 2) == 3


def test_a_result_for_which_there_is_no_room_is_named(process: TaskProcess) -> None:
    with pytest.raises(LakeFull):
        process.run(fill_disk)
    assert process.run(add, 1, 2) == 3


def test_a_death_in_the_middle_of_an_answer_is_seen(process: TaskProcess, tmp_path: Path) -> None:
    """The answer ends there; nothing waits for the rest of it."""
    other = TaskProcess(tmp_path, begin)
    with pytest.raises(IngestError, match=r"process \d+ ended with signal 9"):
        process.run(die_while_answering)
    assert other.run(add, 1, 2) == 3
    other.stop()
    other.join()


def test_a_death_between_two_works_is_seen(process: TaskProcess) -> None:
    os.kill(process.run(os.getpid), signal.SIGKILL)
    with pytest.raises(IngestError, match="signal 9"):
        process.run(add, 1, 2)


def test_one_that_works_is_ended(process: TaskProcess) -> None:
    ended: list[BaseException] = []

    def work() -> None:
        try:
            process.run(time.sleep, 600)
        except IngestError as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while not process.is_busy:
        time.sleep(0.01)
    process.stop()
    thread.join(60)
    assert "signal 15" in str(ended[0])


def count_open() -> int:
    gc.collect()  # files that other tests left to the collector
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_folder_that_was_swept_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    table = pa.table({"a": range(10_000)})
    assert pack(table, folder).open() == table


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(LakeFull):
            pack(pa.table({"a": range(100_000)}), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())
    assert pack("goes on", tmp_path).open() == "goes on"


def test_shared_rows_are_written_once_and_their_file_removed(tmp_path: Path) -> None:
    before = count_open()
    table = pa.table({"a": range(100_000), "b": pa.array([b"x" * 32] * 100_000, pa.binary(32))})
    value = SharedValue(table, tmp_path)
    assert value.open() is table
    received = [pack([value, 1], tmp_path) for _ in range(2)]
    assert [each.path for each in received] == [None, None]
    assert len(list(tmp_path.iterdir())) == 1
    first, second = (each.open()[0].open() for each in received)
    del value
    assert not list(tmp_path.iterdir())
    assert first == second == table
    assert count_open() > before
    del first, second
    assert count_open() == before
