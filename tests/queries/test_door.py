"""The index answers every registered question as its SQL does."""

import shutil
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from tests.lake.chain import Chain, commit_chain
from tests.lake.holdings import commit_holdings
from tests.lake.opened import open_views
from tests.queries.asking import CONTRACTS, Asking
from tonlake.ingest.derive.stages import rebuild
from tonlake.ingest.settings import IngestSections
from tonlake.lake.duck.connection import connect
from tonlake.lake.index.answer import ANSWERS
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.index.index import open_index
from tonlake.lake.index.segment.declared import (
    FACT_COLUMNS,
    MESSAGE_COLUMNS,
    TRANSACTION_COLUMNS,
    TRANSFERS,
)
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.maintenance.removal import prune_lake
from tonlake.lake.settings import LakeSettings
from tonlake.queries.errors import QueryNeeded
from tonlake.queries.loader import NamedQuery, load_queries
from tonlake.queries.reader import Reader, find_composed

SETTINGS = LakeSettings()
DRAWS, MOST_DRAWS = 2, 16
"""Questions to each lake, and how many until one has rows; `test_span` draws fifty pages of each
list, `test_combinations` thousands."""
KEY = ("workchain", "account", "lt", "hash", "now", "mc_seqno", "trace_id")


class Door(NamedTuple):
    """One lake, read through the door and by SQL alone."""

    indexed: Reader
    plain: Reader
    asking: Asking


def open_door(lake: Path) -> Door:
    snapshot = open_snapshot(lake)
    views = open_views(snapshot)
    indexed = Reader(snapshot, views, index=open_index(snapshot, SETTINGS))
    asking = Asking(connect(snapshot), Random(str(lake.name)))  # noqa: S311 - a repeatable test
    return Door(indexed, Reader(snapshot, views), asking)


def make_traced(lake: Path) -> Path:
    """Commit a chain with traces, in two segments and in memory."""
    chain = Chain(11, accounts=5)
    for at in range(1, 25, 2):
        commit_chain(lake, chain, at, at + 1)
    rebuild("traces", lake, IngestSections())
    rebuild_index(lake)
    for at in range(25, 29):
        commit_chain(lake, chain, at, at)
    return lake


def make_stale(lake: Path) -> Path:
    """Commit a chain whose traces were rebuilt after its segment was written."""
    chain = Chain(12, accounts=5)
    commit_chain(lake, chain, 1, 12)
    rebuild_index(lake)
    rebuild("traces", lake, IngestSections())
    return lake


def make_held(lake: Path) -> Path:
    """Commit jettons and NFTs, half of them in a segment."""
    for at in range(1, 7):
        commit_holdings(lake, at, at, seed=3)
        if at == 3:
            rebuild_index(lake)
    return lake


@pytest.fixture(scope="module")
def doors(demo_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Door]:
    """Lakes whose index is in memory, in segments, in both, or out of date; and a pruned one."""
    folder = tmp_path_factory.mktemp("door")
    makers = {"traced": make_traced, "stale": make_stale, "held": make_held}
    made = [make(folder / name) for name, make in makers.items()]
    made.append(shutil.copytree(demo_lake, folder / "pruned"))
    prune_lake(made[-1], 137, SETTINGS)  # within a trace
    return [open_door(lake) for lake in (demo_lake, *made)]


def find_query(name: str) -> NamedQuery:
    """Return the query that declares the parameters of a name."""
    composed = find_composed(name)
    return load_queries()[name] if composed is None else composed.query


def test_every_registered_name_has_its_sql() -> None:
    assert {name for name in ANSWERS if find_composed(name) is None} <= load_queries().keys()
    assert {f"v3/{table.name}" for table in TRANSFERS} <= ANSWERS.keys()


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_both_ways_give_the_same_rows(doors: list[Door], name: str) -> None:
    query, answered, found = find_query(name), set(), 0
    for door in doors:
        if not can_ask(name, door.asking):
            continue
        for drawn in range(MOST_DRAWS):
            if drawn >= DRAWS and found:
                break
            parameters = door.asking.draw(name, query)
            if name == "v2/bags":
                keys = parameters["records"]
                parameters["records"] = list(door.indexed.rows("v3/transactions", keys=keys))
            wanted = door.plain.rows(name, **parameters)
            door.indexed.answered_by.clear()
            rows = door.indexed.rows(name, **parameters)
            assert show(name, rows, wanted) == show(name, wanted, wanted), parameters
            if door.indexed.answered_by == {"index"}:
                answered.add(door)
                found += len(wanted)
    assert answered
    assert found


def can_ask(name: str, asking: Asking) -> bool:
    """Return whether a lake has rows to draw parameters from."""
    contracts = {f"v3/{table}" for table in CONTRACTS}
    if not asking.rows["transaction"]:
        return name in contracts or name.startswith("v3/token_")
    table = {"cells": "cell", "v3/actions_by_key": "action", "v3/actions": "action"}.get(name)
    if "trace" in name:
        table = "trace"
    return table is None or bool(asking.rows[table])


def test_what_the_index_declines_is_refused_where_waiting_is_impossible(doors: list[Door]) -> None:
    door = doors[0]
    index = open_index(door.plain.snapshot, SETTINGS)
    assert index is not None
    reader = Reader(
        door.plain.snapshot, door.plain._database, index=index.without_files(), may_query=False
    )
    tx_hash = door.asking.rows["transaction"][0]["hash"]
    assert reader.rows("v3/transaction_keys_by_hash", hashes=[tx_hash])
    assert reader.rows("v3/blocks", mc_seqno=1, limit=1)
    traces = {"limit": 3}
    for name, parameters in (
        ("v3/traces", traces),
        ("v3/codes", {"hashes": []}),
        ("cells", {"hashes": []}),
    ):
        with pytest.raises(QueryNeeded):
            reader.rows(name, **parameters)
    read = Reader(door.plain.snapshot, door.plain._database, index=index)
    assert read.rows("v3/traces", **traces)
    assert reader.rows("v3/traces", **traces) == read.rows("v3/traces", **traces)


def show(name: str, rows: list[Any], like: list[Any]) -> list[Any]:
    """Return rows with the SQL's columns; sorted where the SQL promises no order."""
    if name == "v3/transactions":
        return [show_record(row) for row in rows]
    columns = list(like[0]) if like else []
    shown = [[row[column] for column in columns] for row in rows]
    if name == "cells":
        return sorted({repr(row): row for row in shown}.values())
    returns = find_query(name).returns
    return sorted(shown, key=repr) if "in no order" in returns else shown


def show_record(record: Any) -> list[Any]:
    states = (record.before, record.after)
    return [
        [record.row[name] for name in (*TRANSACTION_COLUMNS, *KEY)],
        [[line[name] for name in MESSAGE_COLUMNS] for line in record.messages],
        [None if state is None else [state[name] for name in FACT_COLUMNS] for state in states],
    ]
