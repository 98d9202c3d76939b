"""Bits flipped in a lake's files under a running service: no answer is wrong."""

import random
from pathlib import Path

import pytest
from litestar.testing import TestClient

from tests.api.test_damage import ask, copy_indexed, spoil
from tests.patience import patient
from tonlake.api.app import create_app
from tonlake.lake.log.snapshot import open_snapshot

pytestmark = pytest.mark.attack

FLIPS = 200
UNAVAILABLE = 503


def test_a_running_service_gives_no_wrong_answer(demo_lake: Path, tmp_path: Path) -> None:
    """Flip a bit of a file of each kind in turn; answers are unchanged, or 503."""
    lake = copy_indexed(demo_lake, tmp_path / "lake")
    snapshot = open_snapshot(lake)
    kinds = [*filter(None, snapshot.files.values()), snapshot.segments]
    settings = patient(http={"cache_mib": 0}, lake={"recheck_s": 0}, sql={"enabled": True})
    rng = random.Random(19)  # noqa: S311 - the same flips every time
    refused = 0
    for number in range(FLIPS):
        path = rng.choice(kinds[number % len(kinds)]).path
        sound = (lake / path).read_bytes()
        with TestClient(create_app(lake, settings)) as client:
            before = ask(client, "transactions")
            spoil(lake, path, rng.random())
            after = ask(client, "transactions")
        (lake / path).write_bytes(sound)
        for (status, text), expected in zip(after, before, strict=True):
            if status == UNAVAILABLE:
                refused += 1
                assert path in text
            else:
                assert (status, text) == expected, path
    assert refused > 0
