"""Virtual time on the lake, short and long: nothing is lost, doubled or silently wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.crash.soak import FAULTS, main


def pass_hours(folder: Path, hours: float, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([str(folder / "day"), "--hours", str(hours)]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["flips_found"] == found["faults"]["bit"]
    assert found["reads"] >= hours * 60
    assert set(found["faults"]) == set(FAULTS)
    return found


def test_some_minutes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pass_hours(tmp_path, 0.15, capsys)


@pytest.mark.long
def test_two_hours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = pass_hours(tmp_path, 2, capsys)
    assert found["reads"] > 120, "snapshots that were held are read again"
