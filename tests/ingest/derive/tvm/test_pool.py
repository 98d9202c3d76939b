"""The pool: time, memory, a dying process, a full queue, and a missing machine."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import msgspec
import psutil
import pytest

from tests.ingest.derive.tvm.programs import DEEPEN_CELL, ENDLESS_LOOP, make_call
from tests.patience import wait_for
from tonlake.ingest.derive.tvm import pool as pools
from tonlake.ingest.derive.tvm.call import EmulationCall, TvmCell
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.errors import TvmBusy, TvmCrash, TvmMissing, TvmRefusal, TvmTimeout
from tonlake.ingest.settings import TvmSettings

ENDLESS_GAS = 1 << 60
HANGS_S = 120.0
PATIENT = {"wall_ms": 60_000}


@contextmanager
def make_pool(**settings: int) -> Iterator[TvmPool]:
    pool = TvmPool(msgspec.convert({"workers": 1, **settings}, TvmSettings))
    try:
        yield pool
    finally:
        pool.close()


def read_pid(pool: TvmPool) -> int:
    pid = pool._workers[0].pid
    assert pid is not None
    return pid


def read_cpu_s(pool: TvmPool) -> float:
    """Return the CPU time of the only worker's process."""
    return float(psutil.Process(read_pid(pool)).cpu_times().user)


@pytest.mark.usefixtures("tvm")
def test_a_run_without_end_is_cut_off() -> None:
    with make_pool(wall_ms=3000) as pool:
        assert pool.run_get_method(make_call("75")).stack == (5,)
        pid = read_pid(pool)
        start_s = time.monotonic()
        with pytest.raises(TvmTimeout, match="did not end within 3000 ms"):
            pool.run_get_method(make_call(ENDLESS_LOOP, gas_limit=ENDLESS_GAS))
        assert time.monotonic() - start_s >= 3
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert pool.run_get_method(make_call("75")).stack == (5,)


@pytest.mark.usefixtures("tvm")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_process_that_dies_is_replaced(number: int) -> None:
    with make_pool(**PATIENT) as pool, ThreadPoolExecutor(1) as threads:
        assert pool.run_get_method(make_call("75")).stack == (5,)
        call = make_call(ENDLESS_LOOP, gas_limit=ENDLESS_GAS)
        before_s = read_cpu_s(pool)
        running = threads.submit(pool.run_get_method, call)
        wait_for(lambda: read_cpu_s(pool) > before_s + 0.02)
        os.kill(read_pid(pool), number)
        with pytest.raises(TvmCrash):
            running.result(HANGS_S)
        assert pool.run_get_method(make_call("75")).stack == (5,)
        pid = read_pid(pool)
        os.kill(pid, number)  # while it is idle
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert pool.run_get_method(make_call("75")).stack == (5,)


@pytest.mark.usefixtures("tvm")
def test_memory_is_bounded() -> None:
    with make_pool(**PATIENT, memory_mib=256) as pool:
        eager = "6D94C8C96F02EA"  # endless pairs of cells with endless gas
        with pytest.raises(TvmCrash):
            pool.run_get_method(make_call(eager, gas_limit=ENDLESS_GAS))
        assert pool.run_get_method(make_call("75")).stack == (5,)


@pytest.mark.usefixtures("tvm")
@mock.patch.object(pools, "QUEUE", 2)
def test_the_queue_is_bounded() -> None:
    with make_pool(wall_ms=1000) as pool:
        pool.run_get_method(make_call(""))
        start = threading.Barrier(8)

        def ask() -> str:
            start.wait()
            try:
                pool.run_get_method(make_call(ENDLESS_LOOP, gas_limit=200_000_000))
            except (TvmBusy, TvmTimeout) as error:
                return type(error).__name__
            return "ended"

        with ThreadPoolExecutor(8) as threads:
            found = [future.result(HANGS_S) for future in [threads.submit(ask) for _ in range(8)]]
        assert found.count("TvmBusy") >= 4
        assert len(found) - found.count("TvmBusy") >= 2


@pytest.mark.usefixtures("tvm")
@mock.patch.object(pools, "WAIT_MS", 50)
def test_no_call_waits_for_ever() -> None:
    with make_pool(wall_ms=60_000) as pool, ThreadPoolExecutor(1) as threads:
        pool.run_get_method(make_call(""))
        call = make_call(ENDLESS_LOOP, gas_limit=ENDLESS_GAS)
        running = threads.submit(pool.run_get_method, call)
        wait_for(lambda: pool.measure().busy == 1)
        with pytest.raises(TvmBusy, match="no TVM became free in time"):
            pool.run_get_method(make_call(""))
        os.kill(read_pid(pool), signal.SIGKILL)
        with pytest.raises(TvmCrash):
            running.result(HANGS_S)


@pytest.mark.usefixtures("tvm")
def test_a_pool_that_is_closed() -> None:
    with make_pool(**PATIENT) as pool:
        pool.run_get_method(make_call(""))
        pid = read_pid(pool)
        pool.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        with pytest.raises(TvmBusy, match="stopping"):
            pool.run_get_method(make_call(""))


def test_a_pool_that_was_never_asked_starts_nothing() -> None:
    with make_pool() as pool:
        assert pool._workers[0].pid is None


def test_get_methods_run_without_tonpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "tonpy"
    broken.mkdir()
    (broken / "__init__.py").write_text('raise ImportError("no wheel for this computer")\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    emulation = EmulationCall(account=b"", message=None, config=b"", now=0, lt=0)
    with make_pool(**PATIENT) as pool:
        assert pool.run_get_method(make_call("75")).stack == (5,)
        with pytest.raises(TvmMissing, match=r"messages cannot be emulated.*extra \[tvm\]"):
            pool.emulate(emulation)
        assert pool.run_get_method(make_call("76")).stack == (6,)


@pytest.mark.parametrize("garbage", [b"", b"no bag", bytes(100)])
def test_calls_that_the_machine_rejects(pool: TvmPool, garbage: bytes) -> None:
    for call in (
        make_call(garbage),
        make_call("75", data=garbage),
        make_call("", TvmCell(garbage)),
    ):
        with pytest.raises((TvmRefusal, TvmCrash)):
            pool.run_get_method(call)
    assert pool.run_get_method(make_call("75")).stack == (5,)


def test_threads_share_the_pool(pool: TvmPool) -> None:
    def ask(number: int) -> bool:
        return pool.run_get_method(make_call("A4", number)).stack == (number + 1,)  # INC

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(200)))


def test_cells_may_have_the_maximum_depth(pool: TvmPool) -> None:
    assert pool.run_get_method(make_call(DEEPEN_CELL)).exit_code == 8
