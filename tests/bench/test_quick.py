"""The whole benchmark in its quick form: every area is measured and nothing is left behind."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from tests.bench.__main__ import Run
from tests.bench.postgres import find_server
from tests.made.blocks import ROOT

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_server() is None, reason="PostgreSQL is not installed"),
]
START = "from tonlake.api.command.start import start; start()"


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder that PostgreSQL's user can reach: pytest's own folders are closed to it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o711)
        yield path


def _servers() -> set[int]:
    return {
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if (words := process.info["cmdline"]) and (words[0].endswith("/postgres") or START in words)
    }


def test_quick_benchmark_measures_every_area(scratch: Path) -> None:
    before = _servers()
    command = [sys.executable, "-m", "tests.bench", "--quick", "--scratch", str(scratch)]
    result = scratch / "figures.json"
    subprocess.run([*command, "--json", str(result)], cwd=ROOT, check=True, timeout=600)
    run = msgspec.json.decode(result.read_bytes(), type=Run)
    areas = {re.split("[,:]", figure.area)[0] for figure in run.figures}
    assert {"decode", "tonlake ingest", "look-ups", "size", "HTTP", "many files"} <= areas
    assert all(figure.value > 0 for figure in run.figures)
    assert all(
        figure.ratio
        for figure in run.figures
        if figure.area.startswith("look-ups, ") and figure.unit == "ms"
    )
    assert [path.name for path in scratch.iterdir()] == ["figures.json"]
    assert _servers() <= before
