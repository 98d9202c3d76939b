"""A few hundred blocks of the long run: readers, a follower that is killed, a node that breaks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.ingest.simulator.soak import main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long


def test_the_lake_ends_up_as_if_nothing_had_happened(
    demo_node: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TONLAKE_FOLLOW_SHORTER_MS", "200")
    monkeypatch.setenv("TONLAKE_DETECT_CONTRACTS", "false")
    monkeypatch.setenv("TONLAKE_UPKEEP_COMMITS", "8")
    wanted = ["--blocks", "400", "--faults", "16", "--readers", "4", "--pause-ms", "50"]
    code = main([str(demo_node), str(tmp_path / "run"), *wanted])
    found = json.loads(capfd.readouterr().out)
    assert code == 0, found
    assert found["reads"] > 0
