"""Virtual time on the lake, short and long: nothing is lost, doubled or silently wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.crash.soak import FAULTS, main


@pytest.mark.parametrize("hours", [0.15, pytest.param(2, marks=pytest.mark.long)])
def test_some_time(tmp_path: Path, capsys: pytest.CaptureFixture[str], hours: float) -> None:
    assert main([str(tmp_path / "day"), "--hours", str(hours)]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["flips_found"] == found["faults"]["bit"]
    assert found["reads"] >= hours * 60
    assert hours < 1 or found["reads"] > hours * 60, "snapshots that were held are read again"
    assert set(found["faults"]) == set(FAULTS)
