"""Time limits of queries."""

import threading

import duckdb
import pytest

from tonlake.lake.duck.limit import Watch

ENDLESS = "with recursive t as (select 1 as n union all select n from t) select count(*) from t"
HANGS_S = 120
"""Long after which a test that should end is taken to hang."""


class Counted:
    """A connection that counts its interrupts."""

    def __init__(self, enough: int = 1) -> None:
        self.connection = duckdb.connect()
        self.times = 0
        self.reached = threading.Event()
        self._enough = enough

    def interrupt(self) -> None:
        self.times += 1
        self.connection.interrupt()
        if self.times >= self._enough:
            self.reached.set()


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_an_interrupt_before_the_query_is_not_the_last(watch: Watch) -> None:
    busy = Counted()
    with watch.limit(busy.interrupt, 0.0):
        assert busy.reached.wait(HANGS_S)
        with pytest.raises(duckdb.InterruptException):
            busy.connection.execute(ENDLESS)


def test_an_earlier_limit_wakes_the_thread(watch: Watch) -> None:
    patient, hasty = Counted(), Counted(enough=3)
    with watch.limit(patient.interrupt, HANGS_S * 100):
        with watch.limit(hasty.interrupt, 0.0):
            assert hasty.reached.wait(HANGS_S)
        times = hasty.times
        other = Counted(enough=2)
        with watch.limit(other.interrupt, 0.0):
            assert other.reached.wait(HANGS_S)
        assert patient.times == 0
        assert hasty.times == times


def test_what_has_ended_is_left_alone(watch: Watch) -> None:
    connection = duckdb.connect()
    before = set(threading.enumerate())
    for _ in range(100):
        with watch.limit(connection.interrupt, HANGS_S):
            assert connection.execute("select 42").fetchone() == (42,)
    started = set(threading.enumerate()) - before
    assert [thread.name for thread in started] == ["query-watch"]


def test_a_fork_watches_as_well(watch: Watch) -> None:
    with watch.limit(duckdb.connect().interrupt, HANGS_S):
        pass
    thread = watch._thread
    child = threading.Thread()
    child.start()
    child.join()
    watch._thread = child  # As after a fork: the object exists, but its thread does not.
    busy = Counted()
    with watch.limit(busy.interrupt, 0.0):
        assert busy.reached.wait(HANGS_S)
    assert watch._thread is not thread
