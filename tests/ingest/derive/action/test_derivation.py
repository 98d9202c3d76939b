"""Actions in a lake: independent of the order of its blocks, and rebuilt without old rows."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.commands import run
from tests.ingest.whole import read_all, read_table
from tests.lake.opened import open_views
from tonlake.ingest.command.action import find_stored
from tonlake.ingest.derive.action import derivation
from tonlake.ingest.derive.action.derivation import find_superseded
from tonlake.ingest.derive.stages import rebuild as rebuild_stage
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Scope, Span
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema import (
    ACTION_ACCOUNTS,
    ACTION_RANGES,
    ACTIONS,
    BLOCK_PROOFS,
    SUPERSEDED_ACTIONS,
)
from tonlake.queries.reader import Reader

Row = dict[str, Any]


def read_sorted(lake_dir: Path, name: str) -> list[Row]:
    return sorted(read_table(lake_dir, name), key=repr)


@pytest.fixture(scope="module")
def pieces(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of the demo node in small commits, every other one of which was ingested later.

    Most ranges begin with blocks that are there already.
    """
    lake_dir = tmp_path_factory.mktemp("pieces")
    with closing(open_node(demo_node)) as source:
        last = source.last_mc_seqno()
        spans = [
            Span(max(1, first - 10), min(first + 49, last)) for first in range(1, last + 1, 50)
        ]
        for span in spans[::2] + spans[1::2]:
            ingest(source, lake_dir, span, IngestSections())
    return lake_dir


def test_rows_do_not_depend_on_commits(pieces: Path, demo_lake: Path) -> None:
    left_out = ACTION_RANGES.name, BLOCK_PROOFS.name
    assert read_all(pieces, *left_out) == read_all(demo_lake, *left_out)


def test_a_full_rebuild_gives_the_same(pieces: Path, demo_lake: Path) -> None:
    rebuild_stage("actions", pieces, IngestSections(), Scope(everything=True))
    assert read_sorted(pieces, ACTIONS.name) == read_sorted(demo_lake, ACTIONS.name)


def test_ranges_show_what_is_classified(pieces: Path) -> None:
    ranges = read_table(pieces, ACTION_RANGES.name)
    snapshot = open_snapshot(pieces)
    assert sum(row["last_mc_seqno"] - row["first_mc_seqno"] + 1 for row in ranges) == (
        snapshot.last_mc_seqno
    )
    complete = sum(row["traces"] for row in ranges)
    count = "select count(*) from traces where state = 'complete'"
    with closing(connect(snapshot, statement=count)) as connection:
        (expected,) = connection.execute(count).fetchone() or (0,)
    assert complete == expected
    assert sum(row["actions"] for row in ranges) == len(read_table(pieces, ACTIONS.name))


def test_every_account_of_an_action_finds_it(demo_lake: Path) -> None:
    listed = {
        (f"{row['workchain']}:{row['account'].hex().upper()}", row["action_id"])
        for row in read_table(demo_lake, ACTION_ACCOUNTS.name)
    }
    assert listed == {
        (account, row["action_id"])
        for row in read_table(demo_lake, ACTIONS.name)
        for account in row["accounts"]
    }


def test_nothing_to_rebuild(pieces: Path) -> None:
    assert rebuild_stage("actions", pieces, IngestSections()) is None


def test_another_version_keeps_the_earlier_actions(
    pieces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_sorted(pieces, ACTIONS.name)
    for module in ("row", "derivation"):
        monkeypatch.setattr(f"tonlake.ingest.derive.action.{module}.CLASSIFIER_VERSION", 99)
    monkeypatch.setattr(derivation, "_COMPARED", ("trace_id", "classifier_version"))
    answer = run("rebuild", "actions", "--lake", pieces)
    assert answer.exit_code == 0, answer.output
    assert {row["classifier_version"] for row in read_table(pieces, ACTIONS.name)} == {99}
    assert read_sorted(pieces, SUPERSEDED_ACTIONS.name) == before
    snapshot = open_snapshot(pieces)
    reader = Reader(snapshot, open_views(snapshot))
    assert reader.rows("actions_compared") == []
    assert reader.rows("actions_compared", after=98)[0]["change"] == "removed"


def test_rows_of_traces_that_changed() -> None:
    empty = dict.fromkeys(ACTIONS.names)
    base = empty | {"tx_hashes": [], "accounts": [], "ancestor_type": []}
    schema = pa.schema([field.with_nullable(nullable=True) for field in ACTIONS.arrow])
    old = [
        base | {"trace_id": bytes([trace] * 32), "action_id": bytes([action] * 32), "type": "x"}
        for trace, action in ((1, 1), (1, 2), (2, 3))
    ]
    new = [old[1], old[0], old[2] | {"type": "y"}]
    changed = find_superseded(
        pa.Table.from_pylist(old, schema), pa.Table.from_pylist(new, schema)
    ).to_pylist()
    assert [row["trace_id"] for row in changed] == [bytes([2] * 32)]


def test_explain(demo_lake: Path) -> None:
    transfer = next(
        row for row in read_table(demo_lake, ACTIONS.name) if row["type"] == "nft_transfer"
    )
    assert find_stored(demo_lake, bytes(32)) is None
    where = ("--lake", demo_lake)
    answer = run("explain", transfer["trace_id"].hex(), *where)
    assert answer.exit_code == 0, answer.output
    assert "nft_transfer [nft.transfer]" in answer.output
    absent = run("explain", "00" * 32, *where)
    assert (absent.exit_code, absent.stderr.startswith("error: trace 0000")) == (1, True)
    assert run("explain", "00", *where).exit_code == 2
    assert run("explain", "00" * 32).exit_code == 2
