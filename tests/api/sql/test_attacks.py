"""Hostile statements: nothing changes, the service stays up, the next one is answered."""

import json
import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.sql.attacks import ATTACKS, HOGS, READING, SETTINGS, WRITING
from tests.commands import run_program
from tests.lake.rows import file_bytes
from tests.patience import compose
from tonlake.api.app import create_app
from tonlake.lake.maintenance.verify import verify_lake

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def open_place(demo_lake: Path) -> Iterator[Path]:
    """A folder with a lake and a folder beside it, which anybody may read, write and remove."""
    place = Path(tempfile.mkdtemp(prefix="tonlake-open-"))
    shutil.copytree(demo_lake, place / "lake")
    (place / "out").mkdir()
    for path in (place, *place.rglob("*")):
        path.chmod(0o777)
    yield place
    shutil.rmtree(place)


def fill_in(text: str, place: Path) -> str:
    file = next((place / "lake").glob("blocks/day=*/*.parquet"))
    return (
        text.replace("{lake}", str(place / "lake"))
        .replace("{out}", str(place / "out"))
        .replace("{file}", str(file))
    )


def run_victim(place: Path, statements: tuple[str, ...]) -> dict[str, Any]:
    asked = {
        "lake": str(place / "lake"),
        "out": str(place / "out"),
        "statements": [fill_in(text, place) for text in statements],
    }
    done = run_program(
        sys.executable, "-m", "tests.api.sql.victim", input=json.dumps(asked), cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_a_confined_process_cannot_write(open_place: Path) -> None:
    assert len(set(ATTACKS)) == len(ATTACKS) >= 60
    before = file_bytes(open_place)
    answer = run_victim(open_place, (*WRITING, *READING, *SETTINGS))
    assert file_bytes(open_place) == before
    if os.geteuid() == 0:
        assert answer["uid"] == pwd.getpwnam("nobody").pw_uid
    outcomes = answer["outcomes"]
    python = ("open", "append", "truncate", "unlink", "rename", "mkdir", "link", "chmod", "utime")
    for name in (*python, "socket", "fork", "program", "kill", "root"):
        assert outcomes[name].startswith("PermissionError"), (name, outcomes[name])
    for text in READING:
        if "which_secret" not in text:
            assert outcomes[fill_in(text, open_place)] != "done", text


@pytest.fixture
def asker(open_place: Path) -> Iterator[TestClient[Any]]:
    settings = compose(sql={"enabled": True, "timeout_ms": 5000, "memory_mib": 512, "rows": 1000})
    with TestClient(create_app(open_place / "lake", settings)) as client:
        yield client


EVERY = {"writing": WRITING, "reading": READING, "settings": SETTINGS, "hogs": HOGS}


@pytest.mark.parametrize(
    "attacks",
    [HOGS[:1], *(pytest.param(each, marks=pytest.mark.long) for each in EVERY.values())],
    ids=["a hog", *EVERY],
)
def test_attacks_over_http(
    asker: TestClient[Any], open_place: Path, attacks: tuple[str, ...]
) -> None:
    before = file_bytes(open_place)
    for text in attacks:
        answer = asker.post("/sql", content=fill_in(text, open_place))
        assert answer.status_code in (200, 422), (text[:100], answer.text)
        after = asker.post("/sql", content="select count(*) as n from blocks")
        assert after.status_code == 200, (text[:100], after.text)
        assert after.json()["rows"][0][0] > 0
    assert file_bytes(open_place) == before
    assert verify_lake(open_place / "lake").damage == []
