"""A running service sees what happens to its file of keys."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tonlake.api.access.key import LOOK_EVERY_S, Keyring, add_key, revoke_key
from tonlake.api.errors import KeyFileInvalid

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    """Seconds that pass when a test says so."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_changes_of_the_file_are_seen(tmp_path: Path) -> None:
    path, clock = tmp_path / "keys.json", Clock()
    ring = Keyring(path, clock)
    key = add_key(path, "late", 10)
    assert ring.find(key) is None
    clock.now_s += LOOK_EVERY_S
    found = ring.find(key)
    assert found is not None
    revoke_key(path, found.id)
    assert ring.find(key) is not None
    clock.now_s += LOOK_EVERY_S
    assert ring.find(key) is None
    kept = add_key(path, "kept", 10)
    path.unlink()
    clock.now_s += LOOK_EVERY_S
    assert ring.find(kept) is None


def test_a_file_that_breaks_later_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "keys.json", Clock()
    key = add_key(path, "one", 10)
    ring = Keyring(path, clock)
    path.write_text("oops")
    for _ in range(3):
        clock.now_s += LOOK_EVERY_S
        with caplog.at_level(logging.ERROR):
            assert ring.find(key) is not None
    assert len(caplog.records) == 1
    assert "go on to hold" in caplog.text
    assert key not in caplog.text


def test_a_file_that_is_not_there_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "keys.json", Clock()
    ring = Keyring(path, clock)
    told = f"the file of keys {path} is not there: no key is known until it is"
    assert caplog.messages == [told]
    clock.now_s += LOOK_EVERY_S
    assert ring.find("x") is None
    add_key(path, "one", 10)
    clock.now_s += LOOK_EVERY_S
    assert ring.find("x") is None
    assert caplog.messages == [told]
    path.unlink()
    clock.now_s += LOOK_EVERY_S
    assert ring.find("x") is None
    assert caplog.messages == [told, told]


def test_a_broken_file_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text("oops")
    with pytest.raises(KeyFileInvalid):
        Keyring(path, Clock())
