"""Runs ``tonlake ingest`` and measures the resources of its whole process tree.

Peak memory is ``VmHWM`` of proc(5), which counts pages of libraries and files in every process that
maps them; that of all processes together is the sum of ``Pss``, which divides them.
"""

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from tests.made.blocks import ROOT

PROC = Path("/proc")
LOOK_S = 0.05
LOOKS_AT_ALL = 10
"""The memory of all processes is added up once in this many looks: it takes a while."""

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
COMMAND = (sys.executable, "-c", "from tonlake.api.command.start import start; start()", "ingest")
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")
_SHARED_OUT = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)
_TICKS = slice(11, 15)
"""``utime`` and ``stime``, then these."""

_CHILDREN_TICKS = slice(13, 15)
"""``cutime`` and ``cstime``, counted from the state, which follows the name in parentheses."""


class Used(msgspec.Struct, frozen=True):
    """Cost of one ingest: seconds of its processes, and the peak memory of each."""

    transactions: int
    wall_s: float
    cpu_s: float
    """Of all processes."""
    main_s: float
    """Of the process that commits."""
    main_mib: float
    others_mib: tuple[float, ...]
    """Of workers and of processes that build segments or run get-methods; largest first."""
    together_mib: float
    """Peak memory of all processes together; a shared page counts once."""


def run_ingest(
    node: Path,
    lake_dir: Path,
    *,
    workers: int = 1,
    span: str = ":",
    settings: Mapping[str, str] | None = None,
) -> Used:
    """Ingest a node's folder with the command; settings are environment variables."""
    arguments = ["--node", str(node), "--lake", str(lake_dir), "--json"]
    arguments += ["--workers", str(workers), f"--range={span}"]
    began_s = time.perf_counter()
    with subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=os.environ | dict(settings or {}),
        stdout=subprocess.PIPE,
    ) as process:
        peaks, together_mib = _watch(process.pid)
        wall_s = time.perf_counter() - began_s
        children_s = _read_children_s(process.pid)
        _pid, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        answer = process.stdout.read() if process.stdout else b""
    if process.returncode:
        raise RuntimeError(f"tonlake ingest ended with code {process.returncode}")
    cpu_s = used.ru_utime + used.ru_stime
    main_mib = peaks.pop(process.pid)
    return Used(
        transactions=json.loads(answer)["rows"]["transactions"],
        wall_s=wall_s,
        cpu_s=cpu_s,
        main_s=cpu_s - children_s,
        main_mib=main_mib,
        others_mib=tuple(sorted(peaks.values(), reverse=True)),
        together_mib=together_mib,
    )


def _watch(pid: int) -> tuple[dict[int, float], float]:
    """Return the peak MiB of a process, its descendants, and all of them, once it ended."""
    peaks: dict[int, float] = {}
    together_mib, looks = 0.0, 0
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        family = list(_list_family(pid))
        for one in family:
            peak = _PEAK.search(_read(one, "status"))
            if peak:
                peaks[one] = int(peak[1]) / 1024
        if looks % LOOKS_AT_ALL == 0:
            shares = (_SHARED_OUT.search(_read(one, "smaps_rollup")) for one in family)
            together_mib = max(together_mib, sum(int(each[1]) for each in shares if each) / 1024)
        looks += 1
        time.sleep(LOOK_S)
    return peaks, together_mib


def _list_family(pid: int) -> Iterator[int]:
    """Yield a process and its descendants; a child belongs to the thread that started it."""
    yield pid
    for task in sorted((PROC / str(pid) / "task").glob("*")):
        for child in _read(pid, f"task/{task.name}/children").split():
            yield from _list_family(int(child))


def read_others_s() -> float:
    """Return the processor seconds of all processes that this one started, running or ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    _me, *others = _list_family(os.getpid())
    ticks = sum(
        sum(map(int, _read(pid, "stat").rpartition(")")[2].split()[_TICKS])) for pid in others
    )
    return ended.ru_utime + ended.ru_stime + ticks / TICKS_PER_S


def _read(pid: int, name: str) -> str:
    """Return the text of a process's file in /proc; empty if the process has ended."""
    try:
        return (PROC / str(pid) / name).read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _read_children_s(pid: int) -> float:
    """Return the processor seconds of the children that an ended process has waited for."""
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return sum(map(int, fields[_CHILDREN_TICKS])) / TICKS_PER_S
