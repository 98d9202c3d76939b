"""A running service with damaged files answers correctly, or 503 with the file's name."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.damage import flip
from tests.patience import patient
from tonlake.api.app import create_app
from tonlake.lake.log.snapshot import Snapshot, open_snapshot

QUESTIONS = (
    "/api/v3/transactions?limit=20&sort=asc",
    "/api/v3/transactions?limit=3&start_lt=1&exclude_account=0:" + "00" * 32,
    "/api/v3/messages?limit=5&source=-1:" + "33" * 32,
    "/api/v3/topAccountsByBalance?limit=5",
    "/api/v3/jetton/masters?limit=3",
)
FLIPS = 200
STATEMENT = "select hash, lt, total_fees from transactions order by lt, hash limit 50"

SETTINGS = patient(http={"cache_mib": 0}, lake={"recheck_s": 0}, sql={"enabled": True})


@pytest.fixture
def lake(indexed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexed, tmp_path / "lake"))


@pytest.fixture
def client(lake: Path) -> Iterator[TestClient[Any]]:
    with TestClient(create_app(lake, SETTINGS)) as asker:
        yield asker


def ask(client: TestClient[Any], group: str) -> list[tuple[int, Any]]:
    """Return status and text of every answer, last that of SQL if it reads the group of files."""
    answers = [client.get(question) for question in QUESTIONS]
    if group in STATEMENT:
        answers.append(client.post("/sql", data={"query": STATEMENT}))
    return [(answer.status_code, answer.text) for answer in answers]


def spoil(lake: Path, path: str, at: float) -> None:
    """Flip a bit of a file, at a place from 0 to 1."""
    data = (lake / path).read_bytes()
    (lake / path).write_bytes(flip(data, int(len(data) * at), 16))


def _list_files(snapshot: Snapshot, group: str) -> list[str]:
    files = snapshot.segments if group == "lookups" else snapshot.files[group]
    return [file.path for file in files]


@pytest.mark.parametrize(
    ("group", "at"),
    [
        *(("messages", 0.6), ("account_states", 0.999), ("transactions", 0.999)),
        *(("lookups", 0.3), ("lookups", 0.999)),
    ],
)
def test_no_damaged_byte_is_served(
    client: TestClient[Any], lake: Path, group: str, at: float
) -> None:
    before = ask(client, group)
    assert {status for status, _ in before} <= {200, 201}
    paths = _list_files(open_snapshot(lake), group)
    for path in paths:
        spoil(lake, path, at)
    for _ in range(2):
        for (status, text), expected in zip(ask(client, group), before, strict=True):
            if status == 503:
                assert group != "lookups", "SQL answers without segments"
                assert any(path in text for path in paths)
            else:
                assert (status, text) == expected


@pytest.mark.attack
def test_a_bit_of_any_file_is_never_served(lake: Path) -> None:
    snapshot = open_snapshot(lake)
    kinds = [*filter(None, snapshot.files.values()), snapshot.segments]
    dice, refused = random.Random(19), 0  # noqa: S311 - the same flips every time
    for number in range(FLIPS):
        path = dice.choice(kinds[number % len(kinds)]).path
        sound = (lake / path).read_bytes()
        with TestClient(create_app(lake, SETTINGS)) as client:
            before = ask(client, "transactions")
            spoil(lake, path, dice.random())
            after = ask(client, "transactions")
        (lake / path).write_bytes(sound)
        for (status, text), expected in zip(after, before, strict=True):
            refused += status == 503
            assert path in text if status == 503 else (status, text) == expected, path
    assert refused > 0


def test_a_segment_of_other_bytes_gives_way_to_sql(client: TestClient[Any], lake: Path) -> None:
    """A segment is mapped, so its reader meets the new bytes at once."""
    before = ask(client, "lookups")
    for path in _list_files(open_snapshot(lake), "lookups"):
        with (lake / path).open("r+b") as file:
            data = file.read()
            file.seek(0)
            file.write(bytes(byte ^ 0x55 for byte in data))
    assert ask(client, "lookups") == before


def test_metrics_count_the_files_that_are_read_again(lake: Path) -> None:
    with TestClient(create_app(lake, patient(lake={"recheck_s": 1}))) as client:
        client.get(QUESTIONS[0])
        counted = 0.0
        while counted == 0.0:
            lines = client.get("/metrics").text.splitlines()
            (line,) = (x for x in lines if x.startswith("tonlake_lake_rechecked_files_total "))
            counted = float(line.split()[1])
        assert "tonlake_lake_recheck_damaged_files_total 0.0" in lines
