"""The whole benchmark in its quick form: every area is measured, and nothing is left behind."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.bench.__main__ import Run
from tests.bench.blocks import ROOT
from tests.bench.postgres import find_server

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_server() is None, reason="PostgreSQL is not installed"),
    pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed"),
]


def _servers() -> set[str]:
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"/postgres") or b"from api.start import start; start()" in words:
            found.add(path.parent.name)
    return found


def test_quick_benchmark_measures_every_area(tmp_path: Path) -> None:
    before = _servers()
    command = [sys.executable, "-m", "tests.bench", "--quick", "--scratch", str(tmp_path)]
    result = tmp_path / "figures.json"
    subprocess.run([*command, "--json", str(result)], cwd=ROOT, check=True, timeout=600)
    run = msgspec.json.decode(result.read_bytes(), type=Run)
    areas = {figure.area.split(",")[0] for figure in run.figures}
    assert {"decode", "look-ups", "size and load", "HTTP", "contracts"} <= areas
    assert all(figure.value > 0 for figure in run.figures)
    assert all(
        figure.ratio
        for figure in run.figures
        if figure.area.startswith("look-ups, ") and figure.unit == "ms"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]
    assert _servers() <= before


def test_interrupted_benchmark_leaves_nothing_behind(tmp_path: Path) -> None:
    before = _servers()
    command = [sys.executable, "-m", "tests.bench", "--quick", "--only", "lookup"]
    with subprocess.Popen([*command, "--scratch", str(tmp_path)], cwd=ROOT) as bench:
        for _ in range(600):
            if _servers() - before:
                break
            with pytest.raises(subprocess.TimeoutExpired):
                bench.wait(0.1)
        bench.terminate()
        assert bench.wait(60) != 0
    assert not list(tmp_path.iterdir())
    assert _servers() <= before
