"""The node's pipe ends a wait; tests check the pipe's contents, not the time it took."""

import os
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tonlake.ingest.run.follow import Wakeup

EVENT = bytes(84)
FOREVER_S = 3_600.0
"""A wait that is not ended fails by the time limit of the suite."""


def write(path: Path, times: int = 1) -> None:
    pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    for _ in range(times):
        os.write(pipe, EVENT)
    os.close(pipe)


def test_an_event_ends_the_wait_and_all_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "events"
    os.mkfifo(path)
    with closing(Wakeup(str(path))) as wakeup:
        wakeup.wait(0)  # opens the pipe: before that nobody reads
        write(path, 3)
        wakeup.wait(FOREVER_S)
        left = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with pytest.raises(BlockingIOError):
            os.read(left, 1)
        os.close(left)
        # The node went away and came back: neither wakes by itself.
        wakeup.wait(0)
        writer = threading.Thread(target=write, args=(path,))
        writer.start()
        wakeup.wait(FOREVER_S)
        writer.join()


def test_a_pipe_may_appear_later_and_be_recreated(tmp_path: Path) -> None:
    path = tmp_path / "events"
    with closing(Wakeup(str(path))) as wakeup:
        for _ in range(2):
            wakeup.wait(0)
            os.mkfifo(path)
            wakeup.wait(0)
            write(path)
            wakeup.wait(FOREVER_S)
            path.unlink()
        path.write_bytes(EVENT)
        wakeup.wait(0)
        assert path.read_bytes() == EVENT


def test_without_a_pipe_time_passes() -> None:
    with closing(Wakeup("")) as wakeup:
        wakeup.wait(0)
