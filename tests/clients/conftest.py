"""A real server on loopback over the demo lake, and the programs that ask it."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.growth import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NODE = Path(__file__).resolve().parent / "node"
INSTALL_S, RUN_S = 240, 240
OUR_FAULTS = ("EUSAGE", "EINTEGRITY", "EJSONPARSE")
"""Words with which npm says that the lock is wrong; all else is its index, or the way there."""


@pytest.fixture(scope="session")
def server(demo_lake: Path) -> Iterator[str]:
    """Serve the demo lake on a free port; yield the address to put paths behind."""
    with serve(demo_lake) as served:
        yield served.url


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
    """Install the pinned packages; skip where they cannot be had, fail where the lock is wrong."""
    command = [npm, "ci", "--ignore-scripts", "--legacy-peer-deps", "--omit=optional"]
    try:
        done = subprocess.run(
            [*command, "--no-audit", "--no-fund", "--prefer-offline"],
            cwd=NODE,
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"the npm index did not give the packages within {INSTALL_S} s")
    assert not any(word in done.stderr for word in OUR_FAULTS), done.stderr[-4000:]
    if done.returncode != 0:
        pytest.skip(f"npm cannot install: {done.stderr.strip()[-200:]}")
