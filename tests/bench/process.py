"""Runs ``tonlake ingest`` and measures the resources of its whole process tree.

Peak memory is ``VmHWM`` of proc(5), which counts pages of libraries and files in every process that
maps them; that of all processes together is the sum of ``Pss``, which divides them.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from tests.ingest.simulator.service import list_family
from tests.made.blocks import ROOT

LOOK_S = 0.05
LOOKS_AT_ALL = 10
"""The memory of all processes is added up once in this many looks: it takes a while."""

COMMAND = (sys.executable, "-c", "from tonlake.api.command.start import start; start()", "ingest")
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


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
        spent = psutil.Process(process.pid).cpu_times()
        answer = process.stdout.read() if process.stdout else b""
    if process.returncode:
        raise RuntimeError(f"tonlake ingest ended with code {process.returncode}")
    main_s = spent.user + spent.system
    main_mib = peaks.pop(process.pid)
    return Used(
        transactions=json.loads(answer)["rows"]["transactions"],
        wall_s=wall_s,
        cpu_s=main_s + spent.children_user + spent.children_system,
        main_s=main_s,
        main_mib=main_mib,
        others_mib=tuple(sorted(peaks.values(), reverse=True)),
        together_mib=together_mib,
    )


def _watch(pid: int) -> tuple[dict[int, float], float]:
    """Return the peak MiB of a process, its descendants, and all of them, once it ended."""
    peaks: dict[int, float] = {}
    together_mib, looks = 0.0, 0
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        shared_out = 0
        for one in list_family(pid):
            with suppress(OSError, psutil.Error):
                peak = _PEAK.search(Path(f"/proc/{one.pid}/status").read_text(errors="replace"))
                if peak:
                    peaks[one.pid] = int(peak[1]) / 1024
                if looks % LOOKS_AT_ALL == 0:
                    shared_out += one.memory_full_info().pss
        together_mib = max(together_mib, shared_out / (1 << 20))
        looks += 1
        time.sleep(LOOK_S)
    return peaks, together_mib


def read_others_s() -> float:
    """Return the processor seconds of all processes that this one started, running or ended."""
    me = psutil.Process()
    spent_s: float = sum(me.cpu_times()[2:4])
    for other in me.children(recursive=True):
        with suppress(psutil.Error):
            spent_s += sum(other.cpu_times()[:4])
    return spent_s
