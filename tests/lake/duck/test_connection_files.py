"""How many files DuckDB reads: to create views, and to answer a query about one day."""

import re
from pathlib import Path

import pytest
from duckdb import DuckDBPyConnection

from tests.lake.rows import commit_rows
from tonlake.lake.duck.connection import ALL_VIEWS, connect, render_views
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema import TABLES
from tonlake.lake.schema.view_catalogue import MACROS

DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")
COMMITS_A_DAY = 2


@pytest.fixture(scope="module")
def dated_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of three days with two commits each, each with a row in every table."""
    lake = tmp_path_factory.mktemp("dated")
    for at in range(len(DAYS) * COMMITS_A_DAY):
        commit_rows(lake, at + 1, at + 1, rows=1, day=DAYS[at // COMMITS_A_DAY])
    return lake


def test_views_are_made_of_one_file_a_table(dated_lake: Path, tmp_path: Path) -> None:
    snapshot = open_snapshot(dated_lake)
    opened = connect(snapshot)
    snapshot.lake_dir = tmp_path
    for files in snapshot.files.values():
        first = tmp_path / files[0].path
        first.parent.mkdir(parents=True)
        first.symlink_to(dated_lake / files[0].path)
    from_one_file = connect(snapshot)
    names = "select view_name from duckdb_views() where not internal order by all"
    made = [row[0] for row in opened.execute(names).fetchall()]
    assert made == sorted(set(ALL_VIEWS) - MACROS)
    assert made == [row[0] for row in from_one_file.execute(names).fetchall()]


@pytest.fixture(scope="module")
def connection(dated_lake: Path) -> DuckDBPyConnection:
    return connect(open_snapshot(dated_lake))


@pytest.mark.parametrize("name", TABLES)
def test_a_question_about_a_day_reads_its_files_alone(
    connection: DuckDBPyConnection, name: str
) -> None:
    view = {"state_cells": "state_cell_copies"}.get(name, name)
    statement = "explain analyze select count(*), any_value(day) from query_table($1)"
    plan = connection.execute(f"{statement} where day = $2", [view, DAYS[1]]).fetchall()[0][1]
    assert re.findall(r"Scanning Files: (\d+)/(\d+)", plan) == [("2", "6")]
    assert re.findall(r"Total Files Read: (\d+)", plan) == ["2"]


def test_the_text_of_views_does_not_grow_with_the_files(dated_lake: Path) -> None:
    """File lists are separate scripts: DuckDB copies a script for every statement in it."""
    sizes = []
    for number in (2, 6):
        first, *lists = render_views("/", open_snapshot(dated_lake, number).files, ALL_VIEWS)
        sizes.append(len(first))
        assert len(lists) == len(TABLES)
        assert [text.count(";") for text in lists] == [1] * len(TABLES)
    assert sizes[0] == sizes[1]
