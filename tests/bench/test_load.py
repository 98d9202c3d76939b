"""A short load: every request is answered, and overload is refused as documented."""

import json
from pathlib import Path

import pytest

from tests.bench.load import main


@pytest.mark.long
def test_a_load_that_is_light(
    demo_node: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ["--rate", "5", "--seconds", "10", "--overload", "60", "--overload-seconds", "3"]
    main([str(demo_node), str(tmp_path / "load"), *options])
    found = json.loads(capfd.readouterr().out)
    assert found["steady"]["statuses"] == {"200": 50}, found["failed"]
    assert set(found["overload"]["statuses"]) <= {"200", "503"}
    assert found["commits"] > 0
