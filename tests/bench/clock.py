"""Measures CPU time of this and other processes, and samples CPU and wall time."""

import gc
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import psutil

from tests.bench.figure import percentile

_CPUCLOCK_SCHED = 2
_MS_PER_S = 1000
_PACE_STEPS = 1_000_000


def cpu_clock_of(pid: int) -> int:
    """Return the clock id of a process's CPU time, all threads together.

    Source: clock_getcpuclockid(3); include/linux/posix-timers.h, MAKE_PROCESS_CPUCLOCK.
    """
    return ~pid << 3 | _CPUCLOCK_SCHED


def measure_pace_ms() -> float:
    """Return the CPU milliseconds of a fixed loop, which shows a virtual machine at half speed."""
    began_s = time.process_time()
    for _ in range(_PACE_STEPS):
        pass
    return (time.process_time() - began_s) * _MS_PER_S


class Machine:
    """How busy the machine's processors have been since creation, other guests included."""

    def __init__(self) -> None:
        """Start sampling, once a second, until the description is taken."""
        psutil.cpu_times_percent()
        self._worst = 0.0
        self._is_over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def describe(self) -> dict[str, float]:
        """Return the shares of programs and of the host, and the host's in the worst second."""
        self._is_over.set()
        self._watcher.join()
        spent = psutil.cpu_times_percent()
        return {
            "busy_percent": round(100 - spent.idle - spent.iowait - spent.steal, 1),
            "stolen_percent": spent.steal,
            "stolen_percent_worst_second": self._worst,
        }

    def _watch(self) -> None:
        while not self._is_over.is_set():
            self._worst = max(self._worst, psutil.cpu_times_percent(1).steal)


class Samples(msgspec.Struct, frozen=True):
    """Times of one question, asked repeatedly with different arguments."""

    cpu_ms: list[float]
    wall_ms: list[float]

    @property
    def median_ms(self) -> float:
        """Median of the CPU time."""
        return percentile(self.cpu_ms, 0.5)

    @property
    def p99_ms(self) -> float:
        """99th percentile of the CPU time."""
        return percentile(self.cpu_ms, 0.99)

    @property
    def median_wall_ms(self) -> float:
        """Median of the wall time."""
        return percentile(self.wall_ms, 0.5)


def sample(
    ask: Callable[[Any], object],
    arguments: Sequence[Any],
    *,
    pids: Iterable[int] = (),
    warm_up: int = 3,
    budget_s: float = 60.0,
) -> Samples:
    """Ask once per argument and measure the CPU time of this process and of ``pids`` together.

    The first questions are also asked as a warm-up. Asking stops once ``budget_s`` of wall time has
    passed: slow questions get fewer samples, never fewer than three.
    """
    clocks = [time.CLOCK_PROCESS_CPUTIME_ID, *map(cpu_clock_of, pids)]
    for argument in arguments[:warm_up]:
        ask(argument)
    cpu_ms, wall_ms = [], []
    began_s = time.perf_counter()
    gc.collect()
    for argument in arguments:
        cpu_s, wall_s = sum(map(time.clock_gettime, clocks)), time.perf_counter()
        ask(argument)
        now_s = time.perf_counter()
        cpu_ms.append((sum(map(time.clock_gettime, clocks)) - cpu_s) * _MS_PER_S)
        wall_ms.append((now_s - wall_s) * _MS_PER_S)
        if now_s - began_s > budget_s and len(cpu_ms) >= 3:
            break
    return Samples(cpu_ms, wall_ms)
