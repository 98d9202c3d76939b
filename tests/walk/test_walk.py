"""A newcomer's walk: the pages, command by command, in a place without this checkout."""

import io
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.walk.__main__ import ROOT, list_steps

OLDER = "62f3da1756d589c1a312eee28c7317642944cbb9"
"""A commit whose lakes lack tables and whose commands had other names."""


def _find_wheel() -> Path:
    wheels = sorted((ROOT / "dist").glob("tonlake-*x86_64.whl"))
    if not wheels:
        pytest.skip("there is no wheel in dist/: run make dist, or make walk")
    return wheels[-1]


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A wheel of an earlier commit, whose version is lower."""
    archive = ["git", "-C", str(ROOT), "archive", OLDER, "--", ":!tests"]
    done = subprocess.run(archive, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"the history lacks {OLDER[:8]}, whose wheel is upgraded")
    source = tmp_path / "older"
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        tar.extractall(source, filter="data")
    project = source / "pyproject.toml"
    project.write_text(re.sub(r'(?m)^version = ".*"', 'version = "0.0.9"', project.read_text()))
    build = "import sys; from setuptools import build_meta as b; b.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, tmp_path], cwd=source, check=True)
    return next(tmp_path.glob("*.whl"))


def test_pages_have_commands_for_one_who_has_the_wheel_alone() -> None:
    wheel = list_steps("docs/install.md", "From a wheel")
    assert [line.split()[0] for line in wheel] == [
        *("python3", "env/bin/pip", "env/bin/tonlake", "uvx"),
        *("pipx", "pipx", "pipx", "rm"),
    ]
    typed = "\n".join(list_steps("README.md"))
    for word in ("uvx tonlake demo", "tonlake sql", "curl ", "duckdb -init", "tonlake serve"):
        assert word in typed


@pytest.mark.long
def test_a_stranger_gets_from_install_to_uninstall(older: Path, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    walk = [sys.executable, "-m", "tests.walk", str(_find_wheel()), "--older", str(older)]
    walk += ["--folder", str(tmp_path / "walk")]
    done = subprocess.run(walk, cwd=ROOT, capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("walked in: ")
    assert done.stdout.endswith("walk: all steps passed\n")
