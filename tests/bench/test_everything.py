"""A chain is measured with everything on, by one process and by two."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.bench.everything import ROWS_ONLY, Plan, measure_chain
from tests.bench.process import run_ingest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.long
def test_costs_of_a_chain(tmp_path: Path) -> None:
    plan = Plan(size=3_000, counts=(1, 2), peer=False)
    figures = {one.name: one for one in measure_chain(tmp_path, "network", plan)}
    everything, rows = (
        figures[f"{name}, one process"] for name in ("everything", "rows and traces")
    )
    assert everything.value > rows.value
    assert "no PostgreSQL" in everything.note
    assert not any("PostgreSQL's time" in name for name in figures)
    share = figures["serial share: CPU of the process that commits"]
    assert 0 < share.value < 100
    bounds = [
        figures[f"throughput that this share allows, {cores} cores"].value for cores in (16, 64)
    ]
    assert bounds[0] < bounds[1]
    assert all(figure.value > 0 for name, figure in figures.items() if "memory" in name)


def test_a_command_that_fails_is_no_figure(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ended with code"):
        run_ingest(tmp_path, tmp_path / "lake", settings=ROWS_ONLY)


def test_processes_are_counted_with_their_children(demo_node: Path, tmp_path: Path) -> None:
    used = run_ingest(demo_node, tmp_path / "lake", workers=2)
    assert len(used.others_mib) >= 2
    assert used.main_mib / 4 < used.together_mib < used.main_mib + sum(used.others_mib)
    assert 0 < used.main_s < used.cpu_s < used.wall_s * (os.cpu_count() or 1) + 1
