"""Private folders: kept while their process lives, removed once it is dead."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tonlake.ingest.source.node.rocks import Scratch

CHURN = """
from tonlake.ingest.source.node.rocks import Scratch
for _ in range(200):
    scratch = Scratch()
    scratch.new_folder()
    scratch.close()
"""
LEAVE = """
import os
from tonlake.ingest.source.node.rocks import Scratch
print(Scratch().folder)
os._exit(9)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_closing_leaves_nothing(temporary: Path) -> None:
    scratch = Scratch()
    assert scratch.new_folder().is_dir()
    scratch.close()
    assert not list(temporary.iterdir())


def test_the_folder_of_a_dead_process_is_removed(temporary: Path) -> None:
    left = subprocess.run(
        [sys.executable, "-c", LEAVE], capture_output=True, text=True, check=False
    )
    assert left.returncode == 9
    assert [str(path) for path in temporary.iterdir()] == [left.stdout.strip()]
    scratch = Scratch()
    assert list(temporary.iterdir()) == [scratch.folder]
    scratch.close()


def test_many_processes_at_once_leave_each_other_alone(temporary: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", CHURN], stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    assert not list(temporary.iterdir())
