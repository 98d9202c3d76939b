"""A real server on loopback over the demo lake, and the programs that ask it."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from api.app import create_app
from lake.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NODE = Path(__file__).resolve().parent / "node"
START_S, INSTALL_S, RUN_S = 10, 240, 120
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ECONNRESET", "ENETUNREACH")
"""Words with which npm says that its index cannot be reached."""


@pytest.fixture(scope="session")
def server(demo_lake: Path) -> Iterator[str]:
    """Serve the demo lake with uvicorn on a free port; yield the address to put paths behind."""
    app = create_app(demo_lake, Settings())
    process = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="on"))
    thread = threading.Thread(target=process.run, daemon=True)
    thread.start()
    deadline_s = time.monotonic() + START_S
    while not process.started:
        assert time.monotonic() < deadline_s, "the server did not start"
        time.sleep(0.01)
    port = process.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    process.should_exit = True
    thread.join(START_S)
    assert not thread.is_alive(), "the server did not stop"


@pytest.fixture(scope="session")
def run_node(server: str) -> Callable[[str, dict[str, Any]], Any]:
    """Run a script of ``node/`` with a plan and return the JSON it prints.

    The packages it needs are installed once; without node, npm or its index the tests skip.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not on this machine")
    with (NODE / "package.json").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several workers one installs
        if not (NODE / "node_modules" / ".package-lock.json").exists():
            _install(npm)

    def run(script: str, plan: dict[str, Any]) -> Any:
        plan["endpoint"] = f"{server}/api/v2/jsonRPC"
        done = subprocess.run(
            [node, script],
            cwd=NODE,
            input=json.dumps(plan),
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout)

    return run


def _install(npm: str) -> None:
    """Install the pinned packages; skip where the index cannot be reached, fail otherwise."""
    command = [npm, "ci", "--ignore-scripts", "--legacy-peer-deps", "--omit=optional"]
    done = subprocess.run(
        [*command, "--no-audit", "--no-fund"],
        cwd=NODE,
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    unreachable = (
        "ENOTFOUND",
        "EAI_AGAIN",
        "ECONNREFUSED",
        "ETIMEDOUT",
        "ECONNRESET",
        "ENETUNREACH",
    )
    if any(word in done.stderr for word in unreachable):
        pytest.skip("the npm index is unreachable")
    assert done.returncode == 0, done.stderr[-4000:]
