"""A node is measured with everything on, by one process and by two."""

import os
from pathlib import Path

import pytest

from tests.bench.everything import ROWS_ONLY, measure_node, write_chain
from tests.bench.process import run_ingest
from tests.made.chain import DEMO_BLOCK


@pytest.mark.long
def test_costs_of_a_node(tmp_path: Path) -> None:
    node = write_chain(tmp_path, DEMO_BLOCK, 3_000)
    figures = {one.name: one for one in measure_node(tmp_path, node, (1, 2), peer=False)}
    everything, rows = (
        figures[f"{name}, one process"] for name in ("everything", "rows and traces")
    )
    assert everything.value > rows.value > 0
    assert everything.peer is None
    assert everything.holds is None
    assert figures["peak memory, 2 workers: all processes together"].value > 0


def test_a_command_that_fails_is_no_figure(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ended with code"):
        run_ingest(tmp_path, tmp_path / "lake", settings=ROWS_ONLY)


def test_processes_are_counted_with_their_children(demo_node: Path, tmp_path: Path) -> None:
    used = run_ingest(demo_node, tmp_path / "lake", workers=2)
    assert len(used.others_mib) >= 2
    assert used.main_mib / 4 < used.together_mib < used.main_mib + sum(used.others_mib)
    assert 0 < used.main_s < used.cpu_s < used.wall_s * (os.cpu_count() or 1) + 1
