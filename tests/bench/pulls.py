"""Benchmarks lake copies over HTTP: a follower's delay, and many clients of one static server.

    python -m tests.bench.pulls [--commits N] [--clients N] [--server python|nginx|tonlake]

Followers pull from Python's own server in a separate process. Clients pull from that, nginx (Debian
package nginx-light; ``--nginx`` names the program), or tonlake serve with ``[access] publish``.
Times are wall seconds, and CPU is user and system time of all clients, or of the server.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tests.lake.rows import commit_rows
from tests.lake.web import plain_server
from tonlake.lake.log.state import read_state
from tonlake.lake.settings import LakeSections
from tonlake.lake.transfer.follow import PullFollower
from tonlake.lake.transfer.pull import open_pull

if TYPE_CHECKING:
    from collections.abc import Iterator

PROCESSES = 2
START_S = 60
COMMITS_OF_COPIES = 3


def measure_lag(folder: Path, commits: int) -> list[float]:
    """Return, for each commit, how many seconds later the copy had it."""
    source, copy = folder / "source", folder / "copy"
    commit_rows(source, 1, 2)
    seen: dict[int, float] = {}
    over = threading.Event()
    with plain_server(source) as url, open_pull(url, copy) as puller:
        follower = PullFollower(
            puller,
            LakeSections(),
            notify=_show,
            on_report=lambda report: seen.update({report.snapshot: time.monotonic()}),
        )
        thread = threading.Thread(target=follower.run, args=(over.is_set,))
        thread.start()
        made: dict[int, float] = {}
        for at in range(commits):
            commit_rows(source, 3 + at, 3 + at)
            made[read_state(source).number] = time.monotonic()
            time.sleep(0.5)
        until_s = time.monotonic() + 30
        while max(seen, default=0) < max(made) and time.monotonic() < until_s:
            time.sleep(0.05)
        over.set()
        thread.join()
    # A copy that pulls two commits at once gets the earlier one at that time.
    return [
        min(at_s for number, at_s in seen.items() if number >= commit) - made_s
        for commit, made_s in made.items()
    ]


def _pull_many(url: str, folder: Path, count: int) -> None:
    """Pull ``count`` copies at the same time, one per thread."""
    failed: list[BaseException] = []

    def pull(at: int) -> None:
        try:
            with open_pull(url, folder / str(at)) as puller:
                puller.bring()
        except BaseException as error:  # noqa: BLE001 - shown at the end
            failed.append(error)

    threads = [threading.Thread(target=pull, args=(at,)) for at in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise SystemExit(f"{len(failed)} of {count} copies failed: {failed[0]}")


NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log stderr error;
events {{ worker_connections 2048; }}
http {{
    access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


@contextmanager
def serving(server: str, source: Path, folder: Path, nginx: str) -> Iterator[tuple[str, int]]:
    """Serve a lake from a separate process; yields the URL and the process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url, environment = f"http://127.0.0.1:{port}", dict(os.environ)
    if server == "nginx":
        configuration = folder / "nginx.conf"
        configuration.write_text(NGINX.format(folder=folder, port=port, root=source))
        command = [nginx, "-c", str(configuration), "-p", str(folder)]
    elif server == "tonlake":
        start = "from tonlake.api.command.start import start; start()"
        command = [sys.executable, "-c", start, "serve", "--lake", str(source), "--port", str(port)]
        environment["TONLAKE_ACCESS_PUBLISH"] = "1"
        url += "/lake"
    else:
        command = [sys.executable, "-m", "http.server", str(port), "-b", "127.0.0.1"]
        command += ["-d", str(source)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _wait_for(f"{url}/_log/1.json")
            yield url, process.pid
        finally:
            process.terminate()


def _wait_for(url: str) -> None:
    until_s = time.monotonic() + START_S
    while True:
        try:
            with urllib.request.urlopen(url):  # noqa: S310 - our own server
                return
        except OSError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.1)


def read_cpu_s(pid: int) -> float:
    """Return user and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_clients(folder: Path, clients: int, server: str, nginx: str) -> str:
    """Pull copies at the same time, and return a line about them."""
    source = folder / "lake"
    for at in range(COMMITS_OF_COPIES):
        commit_rows(source, 1 + 10 * at, 10 + 10 * at)
    files = len(read_state(source).files)
    with serving(server, source, folder, nginx) as (url, pid):
        began_s, server_s = time.monotonic(), read_cpu_s(pid)
        spawn = multiprocessing.get_context("spawn")
        each = clients // PROCESSES
        workers = [
            spawn.Process(target=_pull_many, args=(url, folder / f"copies{at}", each))
            for at in range(PROCESSES)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        used = resource.getrusage(
            resource.RUSAGE_CHILDREN
        )  # excludes the server, which is still running
        took_s, server_s = time.monotonic() - began_s, read_cpu_s(pid) - server_s
    if any(worker.exitcode for worker in workers):
        raise SystemExit("a copy failed")
    digest = read_state(source).digest
    copies = list(folder.glob("copies*/*"))
    same = sum(read_state(copy).digest == digest for copy in copies)
    return (
        f"{server}: {same} of {len(copies)} copies of {files} files are equal, in {took_s:.1f} s;"
        f" CPU of the server {server_s:.2f} s, of the clients {used.ru_utime + used.ru_stime:.1f} s"
    )


def main() -> None:
    """Print both figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=40)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--server", choices=("python", "nginx", "tonlake"), default="python")
    parser.add_argument("--nginx", default="/usr/sbin/nginx")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.commits:
            late = sorted(measure_lag(folder / "lag", options.commits))
            _show(f"{len(late)} commits: median {median(late):.2f} s late, most {late[-1]:.2f} s")
        if options.clients:
            (folder / "many").mkdir()
            found = measure_clients(folder / "many", options.clients, options.server, options.nginx)
            _show(found)


def _show(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
