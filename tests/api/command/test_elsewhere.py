"""The product where Linux's own offers are missing: proc(5), prctl(2), seccomp(2) and others."""

import os
import sys
from pathlib import Path

import httpx
import pytest

from tests.commands import COMMAND, run_program, serving

TAKEN_AWAY = """
import builtins, ctypes, fcntl, io, os, resource

def barred(real):
    def use(path, *arguments, **named):
        if isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith("/proc"):
            raise FileNotFoundError(2, "No such file or directory", os.fspath(path))
        return real(path, *arguments, **named)
    return use

builtins.open = io.open = barred(io.open)
os.open, os.stat = barred(os.open), barred(os.stat)
for name in ("posix_fadvise", "setresuid", "setresgid", "memfd_create", "sched_getaffinity",
             "pidfd_open", "copy_file_range", "sendfile", "splice"):
    delattr(os, name)

class Library(ctypes.CDLL):
    def __getattr__(self, name):
        if name in ("prctl", "syscall", "malloc_trim", "mallopt"):
            raise AttributeError(name)
        return super().__getattr__(name)

ctypes.CDLL = Library
set_limit = resource.setrlimit

def limit(kind, bounds):
    if kind == resource.RLIMIT_AS:
        raise ValueError("current limit exceeds maximum limit")
    set_limit(kind, bounds)

resource.setrlimit = limit
fcntl.F_FULLFSYNC = 51
del fcntl.F_OFD_SETLK, fcntl.F_OFD_GETLK
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which Python, in child processes too, finds none of these offers."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "sitecustomize.py").write_text(TAKEN_AWAY)
    return {**os.environ, "PYTHONPATH": str(folder), "TONLAKE_SQL_ENABLED": "1"}


@pytest.fixture(scope="module")
def lake(
    demo_node: Path, elsewhere: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The demo lake, made by two processes."""
    made = tmp_path_factory.mktemp("made") / "lake"
    run(elsewhere, "ingest", "--node", demo_node, "--lake", made, "--workers", 2)
    return made


def run(env: dict[str, str], *arguments: object) -> str:
    ended = run_program(*COMMAND, *arguments, env=env)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_offers_are_gone(elsewhere: dict[str, str]) -> None:
    shown = "system.name_folder_of_process(), system.read_peak_mib()"
    program = [sys.executable, "-c", f"from tonlake.lake import system; print({shown})"]
    ended = run_program(*program, env=elsewhere, check=True)
    name, peak_mib = ended.stdout.split()
    assert name == str(Path.cwd())
    assert 1 < float(peak_mib) < 1000


def test_a_lake_is_the_same(lake: Path, demo_lake: Path, elsewhere: dict[str, str]) -> None:
    def list_files(folder: Path) -> list[str]:
        return sorted(str(path.relative_to(folder)) for path in folder.glob("*/day=*/*.parquet"))

    assert list_files(lake) == list_files(demo_lake)  # a name has the digest of the bytes
    assert not [*lake.rglob(".tonlake-*")]
    run(elsewhere, "verify", "--lake", lake)
    whales = run(elsewhere, "query", "whales", "--lake", lake, "--format", "csv")
    assert whales.startswith("address,label,balance")
    run(elsewhere, "export", "--lake", lake, "--to", lake.parent / "copy")


def test_a_service_answers_and_refuses_sql(lake: Path, elsewhere: dict[str, str]) -> None:
    with (
        serving("--lake", lake, env=elsewhere) as (address, _service),
        httpx.Client(base_url=address, timeout=120) as client,
    ):
        assert client.get("api/v3/masterchainInfo").json()["last"]["seqno"] == 238
        [master] = client.get("api/v3/jetton/masters?limit=1").json()["jetton_masters"]
        called = {"address": master["address"], "method": "get_jetton_data", "stack": []}
        assert client.post("api/v3/runGetMethod", json=called).json()["exit_code"] == 0
        refused = client.get("sql?query=select+1")
        assert "cannot prevent a statement from writing" in refused.text
