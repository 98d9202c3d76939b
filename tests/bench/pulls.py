"""Copies of a lake over HTTP: how late a follower is, and many clients of one static server.

    python -m tests.bench.pulls [--commits N] [--clients N]

The server is Python's own, a process of its own; no process of tonlake serves. Times are wall
seconds, and CPU is user and system time of all clients, or of the server.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from tests.lake.rows import commit_rows
from tests.lake.web import plain_server
from tonlake.lake.log.state import read_state
from tonlake.lake.settings import LakeSections
from tonlake.lake.transfer.follow import PullFollower
from tonlake.lake.transfer.pull import open_pull

PROCESSES = 2
COMMITS_OF_COPIES = 3


def measure_lag(folder: Path, commits: int) -> list[float]:
    """Return for each commit how many seconds after it the copy had it."""
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
    # A copy that takes two commits at once has the earlier one then.
    return [
        min(at_s for number, at_s in seen.items() if number >= commit) - made_s
        for commit, made_s in made.items()
    ]


def _pull_many(url: str, folder: Path, count: int) -> None:
    """Pull ``count`` copies at the same time, each by a thread."""
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


def measure_clients(folder: Path, clients: int) -> str:
    """Pull copies at the same time, and return a line about them."""
    source = folder / "lake"
    for at in range(COMMITS_OF_COPIES):
        commit_rows(source, 1 + 10 * at, 10 + 10 * at)
    files = len(read_state(source).files)
    with plain_server(source) as url:
        began_s = time.monotonic()
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
        took_s = time.monotonic() - began_s
    if any(worker.exitcode for worker in workers):
        raise SystemExit("a copy failed")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    digest = read_state(source).digest
    copies = list(folder.glob("copies*/*"))
    same = sum(read_state(copy).digest == digest for copy in copies)
    return (
        f"{same} of {len(copies)} copies of {files} files are equal, in {took_s:.1f} s; "
        f"CPU of server and clients {used.ru_utime + used.ru_stime:.1f} s"
    )


def main() -> None:
    """Print both figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=40)
    parser.add_argument("--clients", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        late = sorted(measure_lag(Path(name) / "lag", options.commits))
        _show(f"{len(late)} commits: median {median(late):.2f} s late, at most {late[-1]:.2f} s")
        _show(measure_clients(Path(name) / "many", options.clients))


def _show(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
