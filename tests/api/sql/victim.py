"""A process confined like those of SQL over HTTP: it runs statements of stdin without any check."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from tonlake.api.sql.sandbox import Bounds, confine
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import read_state


def attempt(act: Callable[[], object]) -> str:
    try:
        act()
    except (OSError, ValueError, duckdb.Error, ImportError) as error:
        return f"{type(error).__name__}: {error}"[:200]
    return "done"


def main() -> None:
    """Run the statements, and some attempts by Python itself."""
    asked: dict[str, Any] = json.load(sys.stdin)
    lake_dir, out = Path(asked["lake"]), Path(asked["out"])
    snapshot = Snapshot(lake_dir, read_state(lake_dir))
    connection = connect(snapshot)
    files = [lake_dir / group[0].path for group in snapshot.files.values() if group]
    confine(Bounds(memory_bytes=512 << 20, cpu_s=60, user="nobody"), files)
    outcomes = {text: attempt(partial(connection.execute, text)) for text in asked["statements"]}
    file = files[0]
    tries: dict[str, Callable[[], object]] = {
        "open": lambda: os.open(out / "x", os.O_WRONLY | os.O_CREAT),
        "append": lambda: os.open(file, os.O_WRONLY | os.O_APPEND),
        "truncate": lambda: os.truncate(file, 0),
        "unlink": file.unlink,
        "rename": lambda: file.rename(f"{file}.x"),
        "mkdir": (out / "x").mkdir,
        "link": lambda: (out / "x").symlink_to("/etc/passwd"),
        "chmod": lambda: file.chmod(0o700),
        "utime": lambda: os.utime(file, (0, 0)),
        "socket": socket.socket,
        "fork": os.fork,
        "program": lambda: subprocess.run(["/bin/true"], check=False),
        "kill": lambda: os.kill(1, 0),
        "root": lambda: os.setuid(0) if os.getuid() else os.chroot(out),
    }
    outcomes |= {name: attempt(act) for name, act in tries.items()}
    connection.execute("select 1")
    sys.stdout.write(json.dumps({"outcomes": outcomes, "uid": os.getuid()}))


if __name__ == "__main__":
    main()
