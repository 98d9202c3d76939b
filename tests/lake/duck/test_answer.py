"""A user's SQL: refused statements, and results in every format with complete values."""

import csv
import io
import json
import os
import signal
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb import DuckDBPyConnection

from tests.lake.rows import file_bytes
from tonlake.lake.duck.answer import (
    ask,
    naming_the_fault,
    write_csv,
    write_json,
    write_parquet,
    write_table,
)
from tonlake.lake.duck.connection import connect
from tonlake.lake.errors import LakeCorrupt, QueryError
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.settings import LakeSettings

EVERYTHING = """
select
    9223372036854775807::hugeint * 100 as huge,
    12345678901.000000001::decimal(38, 9) as coins,
    'Aa'::blob as bytes,
    ['b'::blob] as hashes,
    {'at': 'c'::blob} as nested,
    null as nothing,
    true as yes,
    'a,"b' as text,
    date '2024-02-29' as day,
    timestamp '2024-02-29 01:02:03.000004' as time
"""


@pytest.fixture(scope="module")
def snapshot(read_lake: Path) -> Snapshot:
    return open_snapshot(read_lake)


@cache
def open_views(snapshot: Snapshot) -> DuckDBPyConnection:
    """Return the connection of a snapshot: to make all views takes longer than the questions."""
    return connect(snapshot)


def answer(snapshot: Snapshot, query: str) -> pa.RecordBatchReader:
    return ask(open_views(snapshot).cursor(), snapshot, query)


def shown(write: Callable[..., object], snapshot: Snapshot, query: str, *limit: int) -> str:
    """Return the text of an answer."""
    stream = io.StringIO()
    write(answer(snapshot, query), stream, *limit)
    return stream.getvalue()


def test_json(snapshot: Snapshot) -> None:
    text = shown(write_json, snapshot, EVERYTHING)
    assert '"huge":922337203685477580700,"coins":12345678901.000000001,' in text
    (row,) = json.loads(text)
    assert (row["bytes"], row["hashes"], row["nested"]) == ("4161", ["62"], {"at": "63"})
    assert (row["nothing"], row["yes"]) == (None, True)
    assert (row["day"], row["time"]) == ("2024-02-29", "2024-02-29T01:02:03.000004")
    assert json.loads(shown(write_json, snapshot, "from blocks where false")) == []


def test_small_amounts_have_no_exponent(snapshot: Snapshot) -> None:
    query = "select ton_coins(0) as none, ton_coins(1) as least, [ton_coins(0)] as listed"
    assert shown(write_csv, snapshot, query) == "none,least,listed\n0,0.000000001,[0]\n"
    assert shown(write_table, snapshot, query, 5).split()[-3:] == ["0", "0.000000001", "[0]"]
    assert '"none":0,' in shown(write_json, snapshot, query)


def test_intervals_and_bits_are_text_in_every_format(snapshot: Snapshot) -> None:
    query = """
        select interval 90 minute as "a""b", 2 as twice, '101'::bit as bits, 3 as twice
        union all
        select null, 4, null, 5
        order by twice
    """
    expected = '"a""b",twice,bits,twice\n01:30:00,2,101,3\n,4,,5\n'
    assert shown(write_csv, snapshot, query) == expected
    for query in (
        "select interval 1 month as span",
        "select to_months(1 + 0 * count(*)::int) as span from v_messages limit 1",
    ):
        assert json.loads(shown(write_json, snapshot, query)) == [{"span": "1 month"}]
    file = io.BytesIO()
    write_parquet(answer(snapshot, "select time - time as span from (select now() as time)"), file)
    assert pq.read_table(file).to_pylist() == [{"span": "00:00:00"}]


def test_a_table_has_nothing_that_a_terminal_obeys(snapshot: Snapshot) -> None:
    query = "select chr(27) || '[31m' || chr(7) || chr(8238) as name"
    assert shown(write_table, snapshot, query, 5).split()[1:] == ["[U+001B][31m[U+0007][U+202E]"]


def test_csv(snapshot: Snapshot) -> None:
    names, values = csv.reader(io.StringIO(shown(write_csv, snapshot, EVERYTHING)))
    assert dict(zip(names, values, strict=True)) == {
        "huge": "922337203685477580700",
        "coins": "12345678901.000000001",
        "bytes": "4161",
        "hashes": '["62"]',
        "nested": '{"at":"63"}',
        "nothing": "",
        "yes": "true",
        "text": 'a,"b',
        "day": "2024-02-29",
        "time": "2024-02-29 01:02:03.000004",
    }


def test_table(snapshot: Snapshot) -> None:
    stream = io.StringIO()
    count = write_table(
        answer(snapshot, "select seqno, root_hash, null as n from blocks order by 1"), stream, 2
    )
    lines = stream.getvalue().splitlines()
    assert count == 25
    assert [line.split() for line in lines[:1]] == [["seqno", "root_hash", "n"]]
    assert [line.split()[0] for line in lines[1:]] == ["1", "2"]
    assert len(lines[1].split()[1]) == 64
    assert lines[1].split()[2] == "NULL"


def test_parquet_keeps_types(snapshot: Snapshot) -> None:
    stream = io.BytesIO()
    write_parquet(answer(snapshot, EVERYTHING), stream)
    table = pq.read_table(io.BytesIO(stream.getvalue()))
    assert table.schema.field("huge").type == pa.decimal128(38, 0)
    assert table["bytes"].to_pylist() == [b"Aa"]
    assert str(table["coins"][0]) == "12345678901.000000001"


@pytest.mark.parametrize(
    "query",
    [
        "select 1",
        "with top as (from blocks) select count(*) from top",
        "explain from blocks",
        "explain analyze from blocks",
        "describe blocks",
        "summarize libraries",
        "show tables",
        "pivot blocks on workchain using count(*)",
        "values (1)",
        "select 1; -- and a comment",
    ],
)
def test_statements_that_read(snapshot: Snapshot, query: str) -> None:
    assert answer(snapshot, query).read_all().num_rows > 0


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "exactly one statement is allowed, but there are 0"),
        ("select 1; select 2", "there are 2"),
        ("selec", "syntax error"),
        ("select gone from blocks", "gone"),
        ("from nowhere", "nowhere"),
        ("create table mine (i int)", "but this is CREATE"),
        ("copy blocks to 'x.csv'", "but this is COPY"),
        ("copy (pivot blocks on workchain) to 'x.csv'", "but this is MULTI"),
        ("explain analyze copy blocks to 'x.csv'", "but this is EXPLAIN"),
        ("attach 'x.db'", "but this is ATTACH"),
        ("set threads = 9", "but this is SET"),
        ("from read_text('/etc/hostname')", "Permission"),
    ],
)
def test_statements_that_are_refused(
    snapshot: Snapshot, read_lake: Path, query: str, message: str
) -> None:
    before = file_bytes(read_lake)
    with pytest.raises(QueryError, match=message):
        answer(snapshot, query)
    assert file_bytes(read_lake) == before


def test_a_file_of_the_lake_cannot_be_written_over(snapshot: Snapshot, read_lake: Path) -> None:
    path = read_lake / snapshot.files["blocks"][0].path
    before = path.read_bytes()
    for statement in (
        f"copy (select 1) to '{path}' (use_tmp_file false)",
        f"explain analyze copy (select 1) to '{path}' (use_tmp_file false)",
        f"copy (pivot blocks on workchain) to '{path}' (use_tmp_file false)",
    ):
        with pytest.raises(QueryError):
            answer(snapshot, statement)
    assert path.read_bytes() == before


def test_rows_are_read_as_they_are_asked_for(snapshot: Snapshot) -> None:
    query = """
        select if(n < 9e7, n, error('late'))
        from range(100000000) as numbers(n), (select count(*) from v_messages)
    """
    reader = answer(snapshot, query)
    assert reader.read_next_batch().num_rows > 0


def test_faults_while_rows_are_read(snapshot: Snapshot) -> None:
    query = "select error(concat('row ', seqno)) from blocks"
    with pytest.raises(QueryError, match="row "), naming_the_fault(snapshot):
        answer(snapshot, query).read_all()


@pytest.mark.parametrize(
    "query",
    [
        "select len(list(range)) from range(20000000)",
        "select 1 union all select len(list(range)) from range(20000000)",
    ],
)
def test_a_lack_of_memory_says_what_helps(snapshot: Snapshot, query: str) -> None:
    connection = connect(snapshot, LakeSettings(duckdb_memory_mib=64), statement=query)
    with pytest.raises(QueryError, match="name only the columns"), naming_the_fault(snapshot):
        ask(connection, snapshot, query).read_all()


def test_ctrl_c_ends_a_statement_and_not_the_connection(snapshot: Snapshot) -> None:
    """DuckDB's threads would go on to its end, and the error would be a RuntimeError."""
    open_views(snapshot)  # not to be interrupted
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job's may be ignored
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        answer(snapshot, "select count(*) from range(100000000000) t(a) where a % 7 = 3")
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
    assert answer(snapshot, "select 1 as one").read_all().num_rows == 1


def test_columns_of_one_name() -> None:
    twice = pa.RecordBatchReader.from_batches(pa.schema([("a", "int8"), ("a", "int8")]), [])
    with pytest.raises(QueryError, match="distinct column names: a"):
        write_json(twice, io.StringIO())


def test_a_damaged_table_is_named(lake: Path) -> None:
    file = open_snapshot(lake).files["blocks"][0].path
    (lake / file).unlink()
    with pytest.raises(LakeCorrupt, match=file):
        answer(open_snapshot(lake), "from blocks")
