"""Runs a private PostgreSQL server on a unix socket, not as root; it ends with the benchmark."""

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

BIN_DIRS = Path("/usr/lib/postgresql")
USER = "postgres"
START_TRIES = 300
TRY_S = 0.1
STOP_S = 60

CONFIG = {
    "listen_addresses": "",
    "shared_buffers": "1GB",
    "work_mem": "64MB",
    "maintenance_work_mem": "512MB",
    "max_wal_size": "8GB",
    "jit": "off",
    # Only reads are measured, not loading.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    # Without parallel workers the session's process does all work, so its CPU time is complete.
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
}


def find_server() -> Path | None:
    """Return the folder of the newest installed server's programs, or None."""
    folders = [path for path in BIN_DIRS.glob("*/bin") if (path / "initdb").exists()]
    return max(folders, key=lambda path: float(path.parent.name), default=None)


@contextmanager
def running_server(scratch: Path) -> Iterator[str]:
    """Start a server with an empty database below ``scratch``; yield its connection string."""
    programs = find_server()
    if programs is None:
        raise FileNotFoundError(
            "no PostgreSQL below /usr/lib/postgresql: apt-get install postgresql"
        )
    folder = scratch / "peer"
    folder.mkdir()
    prefix = _leave_root(folder)
    data, log_file = folder / "data", folder / "log"
    make: list[str | Path] = [programs / "initdb", "--pgdata", data, "--no-sync"]
    make += ["--username", USER, "--auth", "trust"]
    subprocess.run([*prefix, *make], check=True, stdout=subprocess.DEVNULL)
    options = [f"--{name}={value}" for name, value in CONFIG.items()]
    start: list[str | Path] = [programs / "postgres", "-D", data, "-k", folder, *options]
    with (
        log_file.open("wb") as log,
        subprocess.Popen(
            ["setpriv", "--pdeathsig", "INT", *prefix[1:], *start], stdout=log, stderr=log
        ) as server,
    ):
        address = f"host={folder} user={USER} dbname=postgres"
        try:
            _await_answer(server, address, log_file)
            yield address
        finally:
            server.send_signal(2)
            try:
                server.wait(STOP_S)
            except subprocess.TimeoutExpired:
                server.kill()
    shutil.rmtree(folder)


def _leave_root(folder: Path) -> list[str | Path]:
    """Return the command prefix that drops root, and hand the folder over to that user."""
    if os.geteuid() != 0:
        return ["setpriv"]
    user = pwd.getpwnam(USER)
    os.chown(folder, user.pw_uid, user.pw_gid)
    # The user must reach its own folder, and nothing else below the scratch folder.
    folder.parent.chmod(0o711)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _await_answer(server: subprocess.Popen[bytes], address: str, log_file: Path) -> None:
    for _ in range(START_TRIES):
        if server.poll() is not None:
            break
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError:
            time.sleep(TRY_S)
        else:
            return
    raise RuntimeError(f"PostgreSQL does not answer: {log_file.read_text()[-2000:]}")
