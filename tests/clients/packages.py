"""Installs the tests' npm packages, pinned by a lock, or skips the tests."""

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

NODE = Path(__file__).resolve().parent / "node"
INSTALL_S, RUN_S = 240, 240
OUR_FAULTS = ("EUSAGE", "EINTEGRITY", "EJSONPARSE")
"""Words with which npm says that the lock is wrong; all else is its index, or the way there."""

_INSTALLED = NODE / "node_modules" / ".package-lock.json"


def provide_packages() -> str:
    """Install the locked packages once; return the program ``node``. Skipped without npm."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not on this machine")
    lock_file = NODE / "package-lock.json"
    with (NODE / "package.json").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # only one of several workers installs
        if not _INSTALLED.exists() or _INSTALLED.stat().st_mtime < lock_file.stat().st_mtime:
            _install(npm)
    return node


def _install(npm: str) -> None:
    """Install the pinned packages; skip if they are unavailable, fail if the lock is wrong."""
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
