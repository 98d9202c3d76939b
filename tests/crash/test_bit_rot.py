"""A thousand flipped bits over all tables of a lake: every one is found when its file is opened."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.damage import flip_any
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import LOG_FOLDER, list_log, read_checkpoint, read_commit, read_state

FLIPS, LOG_FLIPS = 1000, 200
SEED = 7


def choose(items: list[str], count: int, rng: random.Random) -> Iterator[str]:
    """Yield items in turns, each equally often."""
    for at in range(count):
        yield items[at % len(items)] if at < len(items) else rng.choice(items)


def test_flips_in_data_files(demo_lake: Path, tmp_path: Path) -> None:
    """Both opening and verify check files with the same function; intact files pass."""
    state = read_state(demo_lake)
    files = {file.path: file for file in (*state.files, *state.segments)}
    assert {file.table for file in files.values()} > {"transactions", "messages", "jetton_wallets"}
    rng = random.Random(SEED)  # noqa: S311 - a repeatable choice
    for path in choose(sorted(files), FLIPS, rng):
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        sound = (demo_lake / path).read_bytes()
        target.write_bytes(flip_any(sound, rng))
        found = find_damage(tmp_path, [files[path]], trust_earlier=True)
        assert [error.file for error in found] == [path]
    target.write_bytes(sound)
    assert find_damage(tmp_path, [files[path]]) == []


def test_a_flip_shows_in_the_first_snapshot_that_is_opened(demo_lake: Path, tmp_path: Path) -> None:
    """A query on a damaged table is refused, and other tables are unaffected."""
    shutil.copytree(demo_lake, tmp_path, copy_function=os.link, dirs_exist_ok=True)
    damaged = next(file.path for file in read_state(tmp_path).files if file.table == "messages")
    sound = (tmp_path / damaged).read_bytes()
    (tmp_path / damaged).unlink()
    (tmp_path / damaged).write_bytes(flip_any(sound, random.Random(SEED)))  # noqa: S311 - repeatable
    assert set(open_snapshot(tmp_path).damaged) == {"messages"}


def test_flips_in_the_log(demo_lake: Path, tmp_path: Path) -> None:
    """An entry is refused, or unchanged in meaning: its last byte is any white space."""
    entries, checkpoints = list_log(demo_lake)
    names = [f"{number}.json" for number in entries]
    names += [f"{number}.checkpoint.json" for number in checkpoints]
    (tmp_path / LOG_FOLDER).mkdir()
    rng, refused = random.Random(SEED), 0  # noqa: S311 - a repeatable choice
    for name in choose(names, LOG_FLIPS, rng):
        sound = (demo_lake / LOG_FOLDER / name).read_bytes()
        (tmp_path / LOG_FOLDER / name).write_bytes(flip_any(sound, rng))
        number = int(name.partition(".")[0])
        read = read_checkpoint if "checkpoint" in name else read_commit
        try:
            found: object = read(tmp_path, number)
        except LakeCorrupt:
            refused += 1
        else:
            assert found == read(demo_lake, number)
    assert refused > LOG_FLIPS * 0.95
