"""Every notebook runs on the demo lake, and every chart has a title and units."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tonlake.lake.errors import LakeNotFound

pytestmark = pytest.mark.usefixtures("pandas")

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.py"))


def run_notebook(path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the names that the cells of a notebook define."""
    monkeypatch.setenv("LAKE", str(lake))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _outputs, definitions = module.app.run()
    return dict(definitions)


def axes_of(chart: Any) -> Iterator[tuple[str, str]]:
    """Yield the title of each axis of a chart."""
    for name, channel in chart.to_dict()["encoding"].items():
        if name in {"x", "y", "color"}:
            yield name, channel["title"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_chart_has_a_title_and_units(
    path: Path, demo_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions = run_notebook(path, demo_lake, monkeypatch)
    import altair as alt  # noqa: PLC0415 - takes 0.3 s, in each worker

    charts = {name: value for name, value in definitions.items() if isinstance(value, alt.Chart)}
    assert charts
    for name, chart in charts.items():
        assert len(chart.to_dict()["title"]) > 10, name
        axes = dict(axes_of(chart))
        measures = [title for axis, title in axes.items() if axis in {"x", "y"}]
        assert any("(" in title or " per " in title for title in measures), (name, axes)
        assert all(axes.values()), (name, axes)
        assert json.dumps(chart.to_dict()["datasets"]), name


def test_fees_by_kind_add_up(demo_lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [path] = [path for path in NOTEBOOKS if path.stem == "fees_and_gas"]
    names = run_notebook(path, demo_lake, monkeypatch)
    kinds = dict(names["kinds"].iter_rows())
    assert kinds["import"] > 0
    assert sum(kinds.values()) == pytest.approx(float(names["fees_ton"]))


def test_a_notebook_runs_as_a_script(
    demo_lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = next(path for path in NOTEBOOKS if path.stem == "reading_the_lake")
    command = [sys.executable, str(script), "--lake", str(demo_lake)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with pytest.raises(LakeNotFound, match="holds no lake"):
        run_notebook(script, tmp_path, monkeypatch)
