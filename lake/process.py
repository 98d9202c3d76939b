"""Child processes, their allocator and their open files."""

import os
import resource
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn, TypeVar

import msgspec

from tonlake.lake.errors import LakeError
from tonlake.lake.settings import LakeSections

S = TypeVar("S", bound=LakeSections)


class Child(NamedTuple):
    """A child process, with the pipes to it and from it, which have lines of JSON."""

    process: subprocess.Popen[bytes]
    requests: IO[bytes]
    replies: IO[bytes]

    def send(self, message: object) -> None:
        """Write a line to the process."""
        self.requests.write(msgspec.json.encode(message) + b"\n")
        self.requests.flush()


def start_child(module: str, lake_dir: Path) -> Child:
    """Start ``python -m module LAKE``; its standard input closes when this process ends."""
    command = [sys.executable, "-P", "-m", module, str(lake_dir)]
    process = subprocess.Popen(  # noqa: S603 - our own module
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None  # noqa: S101 - a pipe was requested
    assert process.stdout is not None  # noqa: S101 - as above
    return Child(process, process.stdin, process.stdout)


EXIT_REFUSED = 1


def name_child(module: str, kind: type[S], settings: S, *arguments: object) -> list[str]:
    """Return the command line of a module that calls `serve_child` with arguments of text.

    It is passed the sections of ``kind``, without those of a subclass, which may be secret.
    """
    sections = {name: getattr(settings, name) for name in kind.__struct_fields__}
    text = msgspec.json.encode(sections).decode()
    return [sys.executable, "-P", "-m", module, *map(str, arguments), text]


def serve_child(
    name: str, kind: type[S], work: Callable[..., Any], *refusals: type[Exception]
) -> NoReturn:
    """Run the process that `name_child` names until ``work`` is refused, and print why.

    ``work`` is called with the arguments and the settings; ``refusals`` are its errors.
    """
    *arguments, sections = sys.argv[1:]
    expected: tuple[type[Exception], ...] = (LakeError, *refusals)

    def run() -> int:
        try:
            work(*arguments, msgspec.json.decode(sections, type=kind))
        except expected as error:
            write_line(name, str(error))
        return EXIT_REFUSED

    run_child(run)


def run_child(work: Callable[[], int]) -> NoReturn:
    """Run ``work`` until it returns or SIGTERM arrives, and exit with its return code."""
    signal.signal(signal.SIGTERM, _end_orderly)
    # Ctrl-C may reach the whole process group; the parent sends SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch_parent, name="parent", daemon=True).start()
    try:
        code = work()
    except SystemExit as end:
        code = int(end.code or 0)
    # Exit without waiting: library finalizers would interfere with each other, and threads may
    # be waiting for slow hosts. A commit is complete or absent.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def write_line(name: str, text: str) -> None:
    """Write a line to standard error; a full disk must not end the process."""
    with suppress(OSError):
        sys.stderr.write(f"{name}: {text}\n")
        sys.stderr.flush()


def _end_orderly(_number: int, _frame: object) -> None:
    """Exit cleanly; a running commit is complete or absent."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # A finalizer that the signal interrupts drops the exception.
    sys.unraisablehook = lambda _dropped: os._exit(0)
    raise SystemExit(0)


def _watch_parent() -> None:
    """End this process once its parent is gone, or closes its standard input."""
    closed = select.poll()
    closed.register(sys.stdin.fileno(), 0)  # hang-up only: other code reads the input
    closed.poll()
    os.kill(os.getpid(), signal.SIGTERM)


def raise_file_limit() -> None:
    """Let this process and its children open as many files as the system allows."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def share_with_arrow() -> None:
    """Make Arrow and child processes use malloc; call this before Arrow is loaded.

    Arrow's own allocator keeps tens of megabytes, and ``pa.set_memory_pool`` misses Parquet.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
