"""Lakes of earlier versions are readable, and can be upgraded to this version."""

import hashlib
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.commands import run
from tests.ingest.bags import read_bags
from tests.ingest.facts import ask
from tests.ingest.whole import ingest_node
from tests.patience import compose
from tonlake.ingest.command.rebuild import upgrade_lake
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import LakeCorrupt, LakeTooNew
from tonlake.lake.log.envelope import LOG_FORMAT
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import LOG_FOLDER, read_commit, read_state
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import SCHEMA_VERSION

LAKES = Path(__file__).resolve().parents[2] / "data" / "lakes"
NAMES = ("traces", "lookups", "actions")
"""Lakes of masterchain blocks 1 to 8 of the demo node, by what was new in the version."""

SETTINGS = compose(ingest={"mc_blocks_per_commit": 4, "mc_blocks_per_chunk": 4})
TABLES = ("blocks", "transactions", "messages", "account_states", "transaction_traces", "wallets")


@pytest.fixture(params=NAMES)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with (
        pa.input_stream(str(LAKES / f"{request.param}.tar.zst"), compression="zstd") as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        tar.extractall(tmp_path, filter="data")
    lake: Path = tmp_path / request.param
    return lake


@pytest.fixture(scope="module")
def current(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same blocks as written by this version."""
    lake = tmp_path_factory.mktemp("current") / "lake"
    ingest_node(demo_node, lake, SETTINGS, 1, 8)
    list(upgrade_lake(lake, SETTINGS))
    return lake


def rows_of(lake: Path, name: str) -> list[Any]:
    return ask(lake, f"select * exclude (day) from {name} order by all")  # noqa: S608 - ours


def bags_of(lake: Path) -> dict[bytes, bytes]:
    """The bag of every transaction by its hash."""
    with connect(open_snapshot(lake), statement="from transactions") as connection:
        return read_bags(connection)


@pytest.mark.usefixtures("tvm")
def test_an_old_lake_becomes_as_one_of_today(old: Path, current: Path) -> None:
    before = open_snapshot(old)
    assert verify_lake(old).damage == []
    assert before.ranges == ((1, 8),)
    first = {name: rows_of(old, name) for name in TABLES[:4]}
    assert first == {name: rows_of(current, name) for name in TABLES[:4]}
    assert bags_of(old) == bags_of(current)
    done = [what for what, _commit in upgrade_lake(old, SETTINGS)]
    assert done
    assert list(upgrade_lake(old, SETTINGS)) == []
    for name in TABLES:
        assert rows_of(old, name) == rows_of(current, name), name
    assert verify_lake(old).damage == []
    assert open_snapshot(old, before.number).files == before.files
    assert (
        read_state(old).segments[0].schema_version == read_state(current).segments[0].schema_version
    )


@pytest.fixture(scope="module")
def bags(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[bytes, bytes]:
    """The bags of some more blocks, as this version writes them."""
    lake = tmp_path_factory.mktemp("new") / "lake"
    ingest_node(demo_node, lake, SETTINGS, 1, 12)
    return bags_of(lake)


def test_bags_of_an_old_lake_that_goes_on(
    old: Path, demo_node: Path, bags: dict[bytes, bytes]
) -> None:
    ingest_node(demo_node, old, SETTINGS, 1, 12)
    assert bags_of(old) == bags
    compact_lake(old, SETTINGS.lake)
    assert bags_of(old) == bags


def test_the_command_reports_its_work(current: Path) -> None:
    result = run("upgrade", "--lake", current)
    assert (result.exit_code, result.output.split(":")[0]) == (0, "nothing to do")


def rewrite(entry: Path, change: Callable[[dict[str, Any]], None]) -> None:
    said = json.loads(entry.read_bytes())
    change(said)
    entry.write_text(json.dumps(said))


def set_format(said: dict[str, Any]) -> None:
    said["format"] = LOG_FORMAT + 1


def set_format_and_more(said: dict[str, Any]) -> None:
    said.update(format=LOG_FORMAT + 1, signature="what this version knows nothing of")


@pytest.mark.parametrize("change", [set_format, set_format_and_more])
def test_a_lake_of_a_later_version_is_named_as_such(
    old: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    entry = old / LOG_FOLDER / "1.json"
    for checkpoint in (old / LOG_FOLDER).glob("*.checkpoint.json"):
        checkpoint.unlink()
    rewrite(entry, change)
    for ask_lake in (read_state, open_snapshot, verify_lake):
        with pytest.raises(LakeTooNew, match="written by a later version; install"):
            ask_lake(old)


def test_a_later_schema_is_named_as_such(old: Path) -> None:
    def raise_version(said: dict[str, Any]) -> None:
        body = {**said["body"], "schema_version": SCHEMA_VERSION + 1}
        said.update(encode(body))

    rewrite(old / LOG_FOLDER / "1.json", raise_version)
    with pytest.raises(LakeTooNew, match=f"schema version {SCHEMA_VERSION + 1}"):
        read_commit(old, 1)


def encode(body: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an envelope around a body as ``rewrite`` writes it."""
    text = json.dumps(body)
    return {"body": body, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def test_damage_is_not_taken_for_a_later_version(old: Path) -> None:
    rewrite(old / LOG_FOLDER / "1.json", lambda said: said["body"].update(schema_version=99))
    with pytest.raises(LakeCorrupt):
        read_commit(old, 1)
