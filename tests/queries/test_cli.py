"""The command ``tonlake query``: the reader's rows, a list of all queries, clear refusals."""

import json
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests import commands
from tests.lake.opened import open_views
from tests.lake.rows import commit_rows
from tests.s3 import S3Server
from tonlake.lake.copy.pull import copy_lake
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.queries.loader import load_queries
from tonlake.queries.reader import Reader

run = partial(commands.run, "query", prog_name="tonlake")


def test_the_rows_are_those_of_the_reader(demo_lake: Path, tmp_path: Path) -> None:
    snapshot = open_snapshot(demo_lake)
    rows = Reader(snapshot, open_views(snapshot)).rows("v3/accounts_by_balance", limit=4)
    shown = json.loads(
        run("accounts_by_balance", "--lake", demo_lake, "-p", "limit=4", "--json").stdout
    )
    assert shown == [row | {"account": row["account"].hex()} for row in rows]
    file = tmp_path / "richest.parquet"
    done = run(
        *("v3/accounts_by_balance", "--lake", demo_lake, "-p", "limit=4"),
        *("--format", "parquet", "-o", file),
    )
    assert done.exit_code == 0
    assert pq.read_table(file).to_pylist() == rows


def test_bytes_and_lists_are_text(demo_lake: Path) -> None:
    found = json.loads(run("blocks", "--lake", demo_lake, "-p", "limit=1", "--json").stdout)
    (block,) = found
    asked = run(
        *("v3/blocks", "--lake", demo_lake, "-p", "limit=9", "--json"),
        *("-p", f"root_hash={block['root_hash']}"),
    )
    assert json.loads(asked.stdout) == found


def test_all_queries_are_listed() -> None:
    listed = json.loads(run("--list", "--json").stdout)
    queries = load_queries()
    assert [each["name"] for each in listed] == list(queries)
    for each in listed:
        query = queries[each["name"]]
        assert (each["doc"], each["returns"]) == (query.doc, query.returns)
        assert [one["name"] for one in each["parameters"]] == list(query.parameters)
    assert run("--list", "prices").stdout.startswith("everyday/prices: ")  # not explorer/prices
    text = run("--list", "accounts_by_balance").stdout
    assert text.startswith("v3/accounts_by_balance: ")
    assert "-p limit (integer)" in text
    assert "-p descending (boolean = true)" in run("--list", "v3/blocks").stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["v3/block"], "no query is called 'v3/block'; did you mean v3/blocks"),
        (["jetton_wallets"], "several queries are called 'jetton_wallets': pending/jetton_wallets"),
        (["v3/blocks"], "v3/blocks needs -p limit=VALUE"),
        (["v3/blocks", "-p", "limit=many"], "limit=many: expected an integer"),
        (["whales", "-p", "limit=-1"], "query everyday/whales with these parameters: Binder Error"),
        (["whales", "-p", "at=then"], "at=then: expected a time such as 2026-11-21"),
        (["daily_activity", "-p", "first=2026"], "first=2026: expected a UTC day such as"),
        (["jetton_holders", "-p", "master=EQ"], "master=EQ: expected an address"),
        (["v3/blocks", "-p", "limits=1"], "takes no 'limits'; it takes: workchain"),
    ],
)
def test_wrong_questions_are_refused(demo_lake: Path, arguments: list[str], complaint: str) -> None:
    done = run(*arguments, "--lake", demo_lake)
    assert (done.exit_code, complaint in done.stderr) == (1, True)
    assert done.stdout == ""


def test_one_format_is_chosen(demo_lake: Path) -> None:
    done = run("whales", "--lake", demo_lake, "--json", "--format", "csv")
    assert (done.exit_code, "--json or --format, not both" in done.stderr) == (2, True)


def test_a_name_and_a_lake_are_needed(demo_lake: Path) -> None:
    for arguments in ([], ["v3/blocks"], ["--lake", str(demo_lake)]):
        done = run(*arguments)
        assert (done.exit_code, "--list" in done.stderr) == (2, True)


def test_object_storage_is_asked_where_it_is(s3: S3Server, tmp_path: Path) -> None:
    lake, url = tmp_path / "lake", "s3://lakes/query"
    commit_rows(lake, 1, 10, tables=("blocks",))
    copy_lake(lake, url)
    here, there = (
        run("v3/blocks", "--lake", place, "-p", "limit=5", "--json") for place in (lake, url)
    )
    assert (here.exit_code, there.stdout) == (0, here.stdout)
    assert len(json.loads(there.stdout)) == 5
    assert s3.requests
