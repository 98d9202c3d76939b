"""The doctor's findings and exit codes."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import commands
from tests.damage import flip_file
from tests.patience import compose
from tonlake.api.access import add_key
from tonlake.api.command.doctor import (
    Checked,
    check_access,
    check_lake,
    check_machine,
    check_node,
    worst_of,
)
from tonlake.api.settings import Settings


def levels(findings: Iterable[Checked]) -> dict[str, str]:
    found = list(findings)
    assert all(bool(one.advice) is (one.level != "ok") for one in found)
    return {one.subject: one.level for one in found}


@pytest.fixture
def broken_lake(demo_lake: Path, tmp_path: Path) -> Path:
    return shutil.copytree(demo_lake, tmp_path / "lake")


def test_a_sound_lake_and_its_node_are_in_order(demo_lake: Path, demo_node: Path) -> None:
    found = levels(
        [*check_lake(demo_lake, Settings(), full=True), *check_node(demo_node, demo_lake)]
    )
    # How much room the disk has, and whether limits of the machine are low, is not the lake's.
    found.pop("room")
    assert set(found.values()) == {"ok"}
    assert {"lake", "files", "holes", "node", "node and lake"} <= set(found)


def test_a_flipped_bit_is_found_in_full(broken_lake: Path) -> None:
    path = next(broken_lake.glob("blocks/**/*.parquet"))
    flip_file(path)
    assert levels(check_lake(broken_lake, Settings(), full=False))["files"] == "ok"
    assert levels(check_lake(broken_lake, Settings(), full=True))["files"] == "problem"


@pytest.mark.parametrize("cut", [True, False])
def test_a_file_that_is_short_or_gone_is_found(broken_lake: Path, *, cut: bool) -> None:
    path = next(broken_lake.glob("blocks/**/*.parquet"))
    if cut:
        path.write_bytes(path.read_bytes()[:-1])
    else:
        path.unlink()
    found = [one for one in check_lake(broken_lake, Settings(), full=False) if one.level != "ok"]
    assert [one.subject for one in found if one.subject != "room"] == ["files"]
    assert path.name in found[0].text


def test_no_lake_and_a_damaged_log_are_problems(broken_lake: Path, tmp_path: Path) -> None:
    assert levels(check_lake(tmp_path / "none", Settings(), full=False)) == {"lake": "problem"}
    (broken_lake / "_log" / "1.json").write_text("{")
    assert levels(check_lake(broken_lake, Settings(), full=False)) == {"lake": "problem"}
    (broken_lake / "_log" / "1.json").write_text('{"format": 99}')
    assert "--upgrade" in next(check_lake(broken_lake, Settings(), full=False)).advice


def test_a_path_that_duckdb_cannot_take_is_a_problem(tmp_path: Path) -> None:
    (found,) = check_lake(tmp_path / "a*b", Settings(), full=False)
    assert (found.level, found.subject) == ("problem", "lake")
    assert found.text.endswith("give it another name")


def test_no_node_is_a_problem(tmp_path: Path) -> None:
    assert levels(check_node(tmp_path, None)) == {"node": "problem"}


def test_access_is_looked_at(tmp_path: Path) -> None:
    def look(**settings: Any) -> dict[str, str]:
        return levels(check_access(compose(**settings)))

    keys = tmp_path / "keys.json"
    assert look() == {"address": "ok"}
    assert look(http={"host": "192.0.2.1"}) == {"address": "ok"}
    assert look(http={"host": "192.0.2.1"}, access={"rate_limits": "off"}) == {"address": "warning"}
    assert look(access={"keys_required": True})["keys"] == "problem"
    assert look(access={"keys_file": str(keys)})["keys"] == "warning"
    add_key(keys, "one", 1)
    assert look(access={"keys_file": str(keys)})["keys"] == "ok"
    keys.chmod(0o644)
    assert look(access={"keys_file": str(keys)})["keys"] == "warning"
    keys.write_text("oops")
    assert look(access={"keys_file": str(keys)})["keys"] == "problem"
    assert look(upstream={"url": "http://192.0.2.1/api/v2"})["upstream"] == "warning"


def test_a_library_that_cannot_be_used_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "libemulator.so"
    settings = compose(tvm={"emulator_library": str(path)})
    (found,) = (one for one in check_machine(settings) if one.subject == "TVM")
    assert (found.level, found.text) == ("problem", f"{path} does not exist")
    path.write_bytes(b"not a library")
    (found,) = (one for one in check_machine(settings) if one.subject == "TVM")
    assert (found.level, found.text) == ("problem", f"{path} cannot be used")


def test_the_exit_code_shows_the_severity(demo_lake: Path, tmp_path: Path) -> None:
    def run(*arguments: object, **env: str) -> tuple[int, dict[str, Any]]:
        result = commands.run("doctor", "--json", *arguments, env=env)
        return result.exit_code, json.loads(result.stdout)

    code, report = run("--lake", demo_lake)
    assert code == {"ok": 0, "warning": 3}[report["level"]]
    code, report = run("--lake", tmp_path / "none")
    assert (code, report["level"]) == (1, "problem")
    code, report = run(TONLAKE_HTTP_PRT="1")
    assert code == 1
    assert "did you mean [http] port" in report["findings"][0]["text"]
    text = commands.run("doctor", "--lake", tmp_path / "none").stdout
    assert "PROBLEM  lake: " in text
    assert "-> tonlake ingest" in text


def test_the_worst_counts() -> None:
    fine, bad = Checked("a", "ok", "x"), Checked("b", "problem", "y", "z")
    so_so = msgspec.structs.replace(bad, level="warning")
    assert worst_of([fine]) == "ok"
    assert worst_of([fine, so_so]) == "warning"
    assert worst_of([so_so, bad, fine]) == "problem"
