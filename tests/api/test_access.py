"""API keys: the key file, its command, and their use."""

import json
import logging
import stat
import threading
from pathlib import Path

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from tests import commands
from tests.clock import Clock
from tonlake.api.access import (
    LOOK_EVERY_S,
    KeyRecord,
    Keyring,
    add_key,
    find_record,
    make_key,
    read_keys,
    revoke_key,
)
from tonlake.api.errors import KeyFileInvalid


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def run(*arguments: str, **env: str) -> Result:
    return commands.run("key", *arguments, env=env)


def test_a_key_is_added_listed_and_revoked(path: Path) -> None:
    key = run("add", "our wallet", "--rps", "25", "--keys", str(path)).stdout.strip()
    record = find_record(read_keys(path), key)
    assert record is not None
    assert (record.name, record.rps) == ("our wallet", 25)
    shown = run("list", TONLAKE_ACCESS_KEYS_FILE=str(path)).stdout
    assert [shown.split()[at] for at in (0, 3, 4)] == [record.id, "our", "wallet"]
    (line,) = json.loads(run("list", "--json", "--keys", str(path)).stdout)
    assert set(line) == {"id", "name", "rps", "made_at"}
    assert run("revoke", record.id, "--keys", str(path)).exit_code == 0
    again = run("revoke", record.id, "--keys", str(path))
    assert (again.exit_code, "tonlake key list" in again.stderr) == (1, True)
    assert find_record(read_keys(path), key) is None
    run("add", "a", "--keys", str(path))
    assert [record.rps for record in read_keys(path).values()] == [10], "the usual limit"


@pytest.mark.parametrize("words", [("add", "x"), ("list",), ("revoke", "x")])
def test_a_file_must_be_named_and_be_readable(path: Path, words: tuple[str, ...]) -> None:
    assert run(*words).exit_code == 2
    assert run("add", " ", "--keys", str(path)).exit_code == 2
    assert "does not exist" in run("list", "--keys", str(path)).stderr
    path.write_text("oops")
    result = run(*words, "--keys", str(path))
    assert (result.exit_code, "cannot be read" in result.stderr) == (1, True)


def test_a_key_is_found_and_its_neighbours_are_not() -> None:
    made = [make_key(f"wallet {number}", number + 1) for number in range(20)]
    records = {record.id: record for _key, record in made}
    for key, record in made:
        assert find_record(records, key) == record
        for wrong in (key[:-1], key + "x", key.upper(), key.replace("tl_", "tl__", 1), " " + key):
            assert find_record(records, wrong) is None
        other = made[0][0] if key != made[0][0] else made[1][0]
        assert find_record(records, f"tl_{record.id}_{other.split('_', 2)[2]}") is None


@pytest.fixture(scope="module")
def record() -> KeyRecord:
    return make_key("one", 1)[1]


@given(st.text(max_size=60))
def test_any_other_text_is_no_key(record: KeyRecord, text: str) -> None:
    assert find_record({record.id: record}, text) is None
    assert find_record({record.id: record}, f"tl_{record.id}_{text}") is None


def test_the_file_holds_no_key_and_no_two_alike(path: Path) -> None:
    keys = [add_key(path, "same name", 10) for _ in range(5)]
    text = path.read_text()
    assert len(set(keys)) == 5
    for key in keys:
        assert key not in text
        assert key.split("_", 2)[2] not in text
    document = json.loads(text)
    assert document["version"] == 1
    assert len({(record["salt"], record["digest"]) for record in document["keys"]}) == 5
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_revoked_key_is_gone(path: Path) -> None:
    first, second = add_key(path, "a", 10), add_key(path, "b", 25)
    gone = revoke_key(path, first.split("_")[1])
    assert gone is not None
    assert gone.name == "a"
    assert revoke_key(path, first.split("_")[1]) is None
    assert revoke_key(path.with_name("none"), "x") is None
    assert not list(path.parent.glob("none*"))
    records = read_keys(path)
    assert find_record(records, first) is None
    found = find_record(records, second)
    assert found is not None
    assert found.rps == 25


def test_keys_added_at_once_are_all_kept(path: Path) -> None:
    keys: list[str] = []
    threads = [
        threading.Thread(target=lambda: keys.append(add_key(path, "x", 1))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = read_keys(path)
    assert len(records) == 8
    assert all(find_record(records, key) for key in keys)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"keys":[{"id":"x"}]}', '{"kyes":[]}', "\xff"])
def test_a_damaged_file_is_named(path: Path, text: str) -> None:
    path.write_text(text, encoding="latin-1")
    for act in (lambda: read_keys(path), lambda: add_key(path, "a", 1)):
        with pytest.raises(KeyFileInvalid, match=r"keys\.json cannot be read"):
            act()
    assert path.read_text(encoding="latin-1") == text


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert read_keys(tmp_path / "no" / "keys.json") == {}
    with pytest.raises(KeyFileInvalid, match="cannot be written"):
        add_key(tmp_path / "no" / "keys.json", "a", 1)


def test_changes_of_the_file_are_seen(path: Path) -> None:
    clock = Clock(1000.0)
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
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock(1000.0)
    key = add_key(path, "one", 10)
    ring = Keyring(path, clock)
    path.write_text("oops")
    for _ in range(3):
        clock.now_s += LOOK_EVERY_S
        with caplog.at_level(logging.ERROR):
            assert ring.find(key) is not None
    assert len(caplog.records) == 1
    assert "remain valid" in caplog.text
    assert key not in caplog.text


def test_a_missing_file_is_reported_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(1000.0)
    ring = Keyring(path, clock)
    warning = f"the key file {path} does not exist: no key is valid until it does"
    assert caplog.messages == [warning]
    clock.now_s += LOOK_EVERY_S
    assert ring.find("x") is None
    add_key(path, "one", 10)
    clock.now_s += LOOK_EVERY_S
    assert ring.find("x") is None
    assert caplog.messages == [warning]
    path.unlink()
    clock.now_s += LOOK_EVERY_S
    assert ring.find("x") is None
    assert caplog.messages == [warning, warning]


def test_a_broken_file_stops_the_start(path: Path) -> None:
    path.write_text("oops")
    with pytest.raises(KeyFileInvalid):
        Keyring(path, Clock(1000.0))
