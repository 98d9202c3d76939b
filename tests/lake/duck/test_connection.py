"""The database of a snapshot: views of the schema, old files and macros, nothing else."""

import gc
import re
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from duckdb import DuckDBPyConnection
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pytoniq_core.boc.address import Address

from tests.lake.chain import commit_made
from tests.lake.rows import commit_rows, make_table, write_old_file
from tonlake.lake.commit.commit import commit_range
from tonlake.lake.duck.connection import (
    ALL_VIEWS,
    VIEWS_OVER_VIEWS,
    Database,
    SnapshotViews,
    connect,
    list_views,
    read_bases,
    read_macros,
    read_sql,
    render_views,
)
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import LogState
from tonlake.lake.schema import TABLES
from tonlake.lake.schema.dictionary import VIEWS
from tonlake.lake.settings import LakeSettings

HASHES = st.binary(min_size=32, max_size=32)
WORKCHAINS = st.integers(-128, 127)


@pytest.fixture(scope="module")
def connection(read_lake: Path) -> DuckDBPyConnection:
    return connect(open_snapshot(read_lake))


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> DuckDBPyConnection:
    """The views of a lake without rows."""
    lake = tmp_path_factory.mktemp("nothing")
    commit_range(lake, {}, first_mc_seqno=1, last_mc_seqno=2, day="2024-01-01", source={})
    return connect(open_snapshot(lake))


@pytest.fixture(scope="module")
def macros() -> DuckDBPyConnection:
    made = duckdb.connect()
    made.execute(read_sql("macros"))
    return made


def one(connection: DuckDBPyConnection, query: str, *values: object) -> Any:
    """Return the one value of a query."""
    ((value,),) = connection.execute(query, values).fetchall()
    return value


@pytest.mark.parametrize("name", TABLES)
def test_a_view_has_the_rows_and_columns_of_its_table(
    read_lake: Path, connection: DuckDBPyConnection, name: str
) -> None:
    found = connection.view(name).to_arrow_table()
    assert found.column_names == [column.name for column in TABLES[name].shown]
    paths = [read_lake / file.path for file in open_snapshot(read_lake).files[name]]
    expected = pa.concat_tables([pq.read_table(path, partitioning=None) for path in paths])

    def ordered(rows: pa.Table) -> list[dict[str, object]]:
        return sorted(rows.select(TABLES[name].names).to_pylist(), key=repr)

    assert ordered(found) == ordered(expected)


@pytest.mark.parametrize("name", TABLES)
def test_views_of_empty_tables_have_the_same_types(
    nothing: DuckDBPyConnection, connection: DuckDBPyConnection, name: str
) -> None:
    empty = nothing.view(name)
    full = connection.view(name)
    assert (empty.columns, empty.types) == (full.columns, full.types)
    assert empty.fetchall() == []


def test_the_day_of_a_row_is_that_of_its_commit(connection: DuckDBPyConnection) -> None:
    days = "select distinct day::varchar from blocks where mc_seqno between 16 and 20"
    assert connection.execute(days).fetchall() == [("2024-01-17",)]
    assert one(connection, "select count(*) from blocks where day = '2024-01-17'") == 5
    assert one(connection.cursor(), "select count(*) from blocks") == 25, "cursors share the views"


def commit_states(lake: Path, accounts: int) -> list[tuple[bytes, tuple[int, int, int]]]:
    """Commit states of few accounts in many blocks; return the accounts."""
    keys = []
    for first, last in ((1, 5), (6, 9)):
        rows = make_table("account_states", first, last, rows=40)
        pool = [bytes([at]) * 32 for at in range(accounts)]
        columns = {
            "workchain": pa.array([0] * 40, pa.int32()),
            "account": pa.array([pool[at % accounts] for at in range(40)], pa.binary(32)),
            "block_seqno": pa.array(range(first * 100, first * 100 + 40), pa.int64()),
        }
        for name, values in columns.items():
            rows = rows.set_column(rows.column_names.index(name), name, values)
        cells = make_table("state_cells", first, last, rows=5, seed=0)
        shared = pa.array([bytes([at]) * 32 for at in range(5)], pa.binary(32))
        cells = cells.set_column(0, "hash", shared)
        commit_made(lake, first, last, {"account_states": rows, "state_cells": cells})
        keys += rows.select(["account", "mc_seqno", "block_seqno", "balance"]).to_pylist()
    return [(row["account"], (row["mc_seqno"], row["block_seqno"], row["balance"])) for row in keys]


STATES = "from latest_account_states, state_cells, state_cell_copies"


def test_latest_states_and_distinct_cells(tmp_path: Path) -> None:
    keys = commit_states(tmp_path, accounts=7)
    latest: dict[bytes, tuple[int, int, int]] = {}
    for account, state in keys:
        latest[account] = max(latest.get(account, state), state)
    connection = connect(open_snapshot(tmp_path), statement=STATES)
    found = connection.execute(
        "select account, mc_seqno, block_seqno, balance from latest_account_states"
    ).fetchall()
    assert {account: tuple(rest) for account, *rest in found} == latest
    assert len(found) == 7
    assert one(connection, "select count(*) from state_cell_copies") == 10
    assert one(connection, "select count(*) from state_cells") == 5
    first = "select min(mc_seqno) from state_cell_copies where hash = $1"
    seen = "select mc_seqno from state_cells where hash = $1"
    assert one(connection, seen, bytes(32)) == one(connection, first, bytes(32))


@pytest.mark.parametrize("lacking", ["workchain", "gen_utime", "root_hash"])
def test_files_older_than_a_column_have_null_there(tmp_path: Path, lacking: str) -> None:
    old, new = write_old_file(tmp_path, lacking)
    both, alone, now = (
        connect(Snapshot(tmp_path, LogState(files=files)), statement="from shard_blocks")
        for files in ((old, new), (old,), (new,))
    )
    assert both.view("shard_blocks").types == now.view("shard_blocks").types
    assert alone.view("shard_blocks").columns == now.view("shard_blocks").columns
    rows = both.view("shard_blocks").to_arrow_table()
    assert (rows.num_rows, rows[lacking].null_count) == (6, 3)
    assert alone.view("shard_blocks").to_arrow_table()[lacking].null_count == 3


def test_other_files_of_the_lake_are_out_of_reach_too(read_lake: Path) -> None:
    secret = read_lake / "views.sql"
    secret.write_text("x")
    with pytest.raises(duckdb.PermissionException):
        connect(open_snapshot(read_lake)).execute("from read_text($1)", [str(secret)])
    secret.unlink()


def test_settings_are_applied(read_lake: Path) -> None:
    settings = LakeSettings(duckdb_threads=3, duckdb_memory_mib=256)
    connection = connect(open_snapshot(read_lake), settings)
    assert one(connection, "select current_setting('threads')") == 3
    assert one(connection, "select current_setting('memory_limit')") == "256.0 MiB"


def test_a_statement_has_the_macros_that_it_needs(read_lake: Path) -> None:
    snapshot = open_snapshot(read_lake)
    for statement in ("select ton_friendly(0, '', true)", "from v_accounts", "from labels"):
        with connect(snapshot, statement=statement) as connection:
            connection.execute(f"explain {statement}")
    with connect(snapshot, statement="from blocks") as connection:
        made = "select count(*) from duckdb_functions() where starts_with(function_name, 'ton_')"
        assert one(connection, made) == 0
    misspelt = "select ton_frendly(0, '')"
    with (
        connect(snapshot, statement=misspelt) as connection,
        pytest.raises(duckdb.CatalogException, match='Did you mean "ton_friendly"'),
    ):
        connection.execute(misspelt)


@examples(max_examples=20, deadline=None)
@given(WORKCHAINS, HASHES, st.tuples(st.booleans(), st.booleans()))
def test_address_forms(
    macros: DuckDBPyConnection, workchain: int, account: bytes, flags: tuple[bool, bool]
) -> None:
    bounceable, testnet = flags
    expected = Address((workchain, account))
    friendly = one(
        macros,
        "select ton_friendly($1::int, $2::blob, bounceable := $3, testnet := $4)",
        workchain,
        account,
        bounceable,
        testnet,
    )
    assert friendly == expected.to_str(is_bounceable=bounceable, is_test_only=testnet)
    raw = one(macros, "select ton_address($1::int, $2::blob)", workchain, account)
    assert raw == expected.to_str(is_user_friendly=False).upper()
    for form in (friendly, raw, raw.lower(), friendly.replace("-", "+").replace("_", "/")):
        assert one(macros, "select ton_account($1)", form) == account
        assert one(macros, "select ton_workchain($1)", form) == workchain
        assert one(macros, "select ton_raw($1)", form) == raw


REFUSED = {
    "address": [
        "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDt",  # the last character is another
        "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sD",
        "MQDO7LLFdHmVHNZNq8uk6fCw4JPlDLfOs0ZIPki5h0p992_D",  # its tag is no address's
        *("0:" + "a" * 63, "a" * 64, "foo.ton", ""),
    ],
    "hash": ["", "abc", "ab" * 31, "A" * 42, "A" * 44, "0x", "z" * 64],
    "op-code": ["", "0x", "0x123456789", "4294967296", "-2147483649", "f8a7ea5"],
}


@pytest.mark.parametrize(
    ("macro", "kind"),
    [
        *((macro, "address") for macro in ("ton_account", "ton_workchain", "ton_raw")),
        *(("ton_hash", "hash"), ("ton_opcode_number", "op-code")),
    ],
)
def test_other_forms_are_refused(macros: DuckDBPyConnection, macro: str, kind: str) -> None:
    rows = "(select unnest([$1, null]) as form)"
    for form in REFUSED[kind]:
        for query in (f"select {macro}($1)", f"select {macro}(form) from {rows}"):  # noqa: S608
            with pytest.raises(duckdb.InvalidInputException, match=f"is not an? {kind}"):
                macros.execute(query, [form])


@examples(max_examples=20, deadline=None)
@given(st.integers(0, 10**38 - 1), st.integers(0, 12) | st.integers(0, 255))
def test_scaled_amounts(macros: DuckDBPyConnection, units: int, decimals: int) -> None:
    scaled = one(macros, "select ton_scaled($1::decimal(38, 0), $2)", units, decimals)
    with localcontext() as context:
        context.prec = 400
        exact = Decimal(units).scaleb(-decimals)
        if abs(exact) >= 10**29:
            assert scaled is None
        else:
            assert abs(scaled - exact) <= Decimal("0.5e-9")


def test_codes_and_times_in_words(macros: DuckDBPyConnection) -> None:
    assert one(macros, "select ton_exit_words(-14)") == "out of gas"
    assert one(macros, "select ton_exit_words(0)") == "success"
    assert one(macros, "select ton_exit_words(1234)") == "thrown by the contract"
    assert one(macros, "select ton_action_words(37)") == "not enough TON"
    assert one(macros, "select ton_time(1700000000)::varchar") == "2023-11-14 22:13:20"


@examples(max_examples=20, deadline=None)
@given(HASHES)
def test_hash_forms(macros: DuckDBPyConnection, value: bytes) -> None:
    base64 = one(macros, "select ton_base64($1::blob)", value)
    url = one(macros, "select ton_base64url($1::blob)", value)
    assert url == base64.replace("+", "-").replace("/", "_")
    mixed = base64[:20] + url[20:]
    bare = value.hex(), value.hex().upper(), base64.rstrip("="), url.rstrip("=")
    for form in (*bare, base64, url, mixed, f"0x{value.hex()}"):
        assert one(macros, "select ton_hash($1)", form) == value


@examples(max_examples=20, deadline=None)
@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1))
def test_number_forms(macros: DuckDBPyConnection, number: int, opcode: int) -> None:
    coins = one(macros, "select ton_coins($1::bigint)", number)
    assert coins == Decimal(number).scaleb(-9)
    assert one(macros, "select ton_shard($1::bigint)", number) == f"{number % 2**64:016X}"
    assert one(macros, "select ton_opcode($1::int)", opcode) == f"0x{opcode % 2**32:08x}"
    forms = f"0x{opcode % 2**32:x}", str(opcode), str(opcode % 2**32)
    assert {one(macros, "select ton_opcode_number($1)", form) for form in forms} == {opcode}


@pytest.mark.parametrize(
    "call",
    [
        *("ton_friendly(null, null)", "ton_address(null, null)"),
        *("ton_scaled(null, 9)", "ton_scaled(1, null)"),
        *(f"ton_{name}(null)" for name in ("account", "workchain", "hash", "base64", "base64url")),
        *(f"ton_{name}(null)" for name in ("coins", "exit_words", "action_words", "shard")),
        *(f"ton_{name}(null)" for name in ("opcode", "opcode_number", "time")),
    ],
)
def test_null_in_null_out(macros: DuckDBPyConnection, call: str) -> None:
    assert macros.sql(f"select {call}").fetchall() == [(None,)]


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
    names = "select view_name from duckdb_views() where not internal order by all"
    made = [row[0] for row in opened.execute(names).fetchall()]
    assert made == sorted({*ALL_VIEWS} - {each.name for each in VIEWS.values() if each.parameters})
    assert made == [row[0] for row in connect(snapshot).execute(names).fetchall()]


@pytest.fixture(scope="module")
def dated_connection(dated_lake: Path) -> DuckDBPyConnection:
    return connect(open_snapshot(dated_lake))


@pytest.mark.parametrize("name", TABLES)
def test_a_question_about_a_day_reads_its_files_alone(
    dated_connection: DuckDBPyConnection, name: str
) -> None:
    view = {"state_cells": "state_cell_copies"}.get(name, name)
    statement = "explain analyze select count(*), any_value(day) from query_table($1)"
    rows = dated_connection.execute(f"{statement} where day = $2", [view, DAYS[1]]).fetchall()
    plan = rows[0][1]
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


ROWS = "select count(*) from blocks"


class Owner:
    """A borrower of a connection."""


def ask(views: SnapshotViews, statement: str) -> list[tuple[object, ...]]:
    """Run a statement on its own connection."""
    owner = Owner()
    connection = views.lend(owner)
    views.provide(statement)
    return connection.execute(statement).fetchall()


def count_schemas(views: SnapshotViews) -> int:
    """Return how many snapshots have a schema."""
    found = ask(views, "select count(*) from duckdb_schemas() where schema_name ^@ 'snapshot_'")
    return int(str(found[0][0]))


def test_a_statement_names_its_views() -> None:
    assert list_views("select 1") == ()
    assert list_views("select * from blocks, account_states") == ("blocks", "account_states")
    traced = list_views("from traced_transactions")
    assert traced == ("transactions", "transaction_traces", "traced_transactions")
    assert list_views("from state_cells") == ("state_cell_copies", "state_cells")
    assert read_bases("v_comments") == ("message_bodies",)
    assert read_bases("v_balances") == ("account_states", "jetton_wallets", "v_jettons")


@pytest.mark.parametrize("name", VIEWS_OVER_VIEWS)
def test_views_are_made_after_those_that_their_text_names(name: str) -> None:
    assert read_bases(name)
    made = list_views(name.upper())
    assert made[-1] == name
    assert all(made.index(base) < made.index(view) for view in made for base in read_bases(view))


def test_macros_need_no_view() -> None:
    text = re.sub(r"--.*", "", read_macros())
    macros = re.findall(r"macro (\w+)", text)
    assert len(macros) == len({*macros})
    assert set(re.findall(r"from (\w+)", text)) - {*macros} == {"query_table"}


def test_snapshots_open_at_once_see_their_own_files(read_lake: Path) -> None:
    database = Database(read_lake, LakeSettings())
    views = {number: database.open(open_snapshot(read_lake, number)) for number in (3, 1, 2)}
    apart = {
        number: connect(open_snapshot(read_lake, number), statement=ROWS).execute(ROWS).fetchall()
        for number in views
    }
    assert len({str(rows) for rows in apart.values()}) == 3
    for _ in range(2):
        assert {number: ask(each, ROWS) for number, each in views.items()} == apart
    database.close()


def test_every_view_can_be_asked(read_lake: Path) -> None:
    snapshot = open_snapshot(read_lake)
    views, apart = Database(read_lake, LakeSettings()).open(snapshot), connect(snapshot)
    for name in set(ALL_VIEWS) - set(VIEWS):
        count = f"from (select count(*) from {name})"  # noqa: S608 - a view of ours
        assert ask(views, count) == apart.execute(count).fetchall()


def test_views_without_readers_are_dropped(read_lake: Path) -> None:
    database = Database(read_lake, LakeSettings())
    kept = database.open(open_snapshot(read_lake, 1))
    before = ask(kept, ROWS)
    for _ in range(3):
        views = database.open(open_snapshot(read_lake))
        ask(views, ROWS)
        del views
        gc.collect()
    newest = database.open(open_snapshot(read_lake))
    assert count_schemas(newest) == 2
    assert ask(kept, ROWS) == before


def test_a_database_that_knew_many_files_gives_way_to_another(
    read_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, newest = Database(read_lake, LakeSettings()), open_snapshot(read_lake)
    older = msgspec.structs.replace(newest.files["blocks"][0], path="blocks/day=2000-01-01/gone")
    before = open_snapshot(read_lake)
    before.files["blocks"] = (older, *newest.files["blocks"])
    views = database.open(before)
    with pytest.raises(duckdb.Error):
        ask(views, ROWS)
    same = database.open(newest)
    expected = ask(same, ROWS)
    assert count_schemas(same) == 2
    monkeypatch.setattr("tonlake.lake.duck.connection.FORGOTTEN_KEPT", 0)
    other = database.open(newest)
    assert ask(other, ROWS) == expected
    assert count_schemas(other) == 1
    assert ask(same, ROWS) == expected
    assert count_schemas(database.open(newest)) == 2


def test_a_reader_that_is_left_keeps_its_views(read_lake: Path) -> None:
    database = Database(read_lake, LakeSettings())
    owner, views = Owner(), database.open(open_snapshot(read_lake, 1))
    connection = views.lend(owner)
    views.provide(ROWS)
    database.close()
    del database
    gc.collect()
    assert connection.execute(ROWS).fetchall() != [(0,)]


def test_a_connection_is_lent_to_one_at_a_time(read_lake: Path) -> None:
    views = Database(read_lake, LakeSettings()).open(open_snapshot(read_lake))
    one, other = Owner(), Owner()
    first, second = views.lend(one), views.lend(other)
    assert first is not second
    del one
    gc.collect()
    third = Owner()
    assert views.lend(third) is first


@pytest.mark.parametrize(
    "statement",
    [
        "from read_text('/etc/hostname')",
        "from read_text('{lake}/../lake-2/secret')",
        "from glob('/*')",
        "from read_csv('https://example.com/x.csv')",
        "copy (select 1) to '/tmp/tonlake-was-here.csv'",
        "attach '/tmp/tonlake-was-here.db'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set allowed_directories = ['/']",
        "set threads = 64",
        "reset lock_configuration",
        "export database '/tmp/tonlake-was-here'",
    ],
)
def test_nothing_but_the_lake_is_in_reach(
    connection: DuckDBPyConnection, read_lake: Path, statement: str
) -> None:
    views = Database(read_lake, LakeSettings()).open(open_snapshot(read_lake))
    owner = Owner()
    for made in (connection, views.lend(owner)):
        with pytest.raises(duckdb.Error):
            made.execute(statement.format(lake=read_lake))
