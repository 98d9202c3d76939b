"""A process that follows a node for a server: ``python -m ingest.tail --node DIR --lake DIR``.

It ends when it is told to, and when the one who started it is gone: that one holds the other end
of its standard input.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

from ingest.errors import IngestError
from ingest.follow import Follower
from ingest.origin import Origin
from lake.errors import LakeError
from lake.settings import load_settings

EXIT_REFUSED = 1


def name_command(origin: Origin, lake: Path) -> list[str]:
    """Return the command that starts this process."""
    options = [*origin.options(), "--lake", str(lake)]
    return [sys.executable, "-P", "-m", "ingest.tail", *options]


def follow_origin(origin: Origin, lake: Path) -> int:
    """Follow a node, or a network, until this process is told to end; return its exit code."""
    settings, _origins = load_settings()
    follower = Follower(lambda: origin.open(settings), lake, settings, tell=_tell)
    problem: str | None = None
    try:
        follower.run(lambda: False)
    except (IngestError, LakeError) as error:
        problem = str(error)
        _tell(problem)
    finally:
        follower.close(problem)
    return EXIT_REFUSED


def _tell(text: str) -> None:
    # A log without room must not end what it tells of.
    with suppress(OSError):
        sys.stderr.write(f"follow: {text}\n")
        sys.stderr.flush()


def end_orderly(_number: int, _frame: object) -> None:
    """End in an orderly way; a commit under way is whole or absent."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)


def watch_parent() -> None:
    """End this process once the one who started it is gone, or closes its standard input."""
    while os.read(sys.stdin.fileno(), 1):  # Not through its buffer, which ends with a lock.
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Run the process."""
    parser = argparse.ArgumentParser(prog="ingest.tail", description="Follow a node.")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--node", type=Path)
    place.add_argument("--liteserver", type=Path)
    parser.add_argument("--lake", type=Path, required=True)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, end_orderly)
    # Ctrl-C reaches the whole group: the one who started this process tells it to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch_parent, name="parent", daemon=True).start()
    return follow_origin(Origin(options.node, None, options.liteserver), options.lake)


if __name__ == "__main__":
    try:
        code = main()
    except SystemExit as end:
        code = int(end.code or 0)
    # All is closed: what is left are libraries whose own ends would complain of each other.
    sys.stderr.flush()
    os._exit(code)
