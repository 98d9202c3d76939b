"""Lakes in object storage: copied there and back, queries there, and failures."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import tonlake
from tests.commands import run
from tests.lake.rows import commit_rows, file_bytes, flip_value
from tests.s3 import CREDENTIALS, S3Server
from tonlake.lake.copy.pull import copy_lake
from tonlake.lake.duck.connection import connect
from tonlake.lake.duck.own import OwnTable
from tonlake.lake.duck.remote import open_to_ask
from tonlake.lake.errors import (
    CopyRefused,
    LakeNotFound,
    SnapshotNotFound,
    SourceRefused,
    StorageError,
)
from tonlake.lake.log.snapshot import Selection, open_snapshot
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.own import add_table
from tonlake.lake.settings import LakeSettings
from tonlake.lake.storage.storage import open_remote, open_storage
from tonlake.queries.loader import load_queries
from tonlake.queries.parameter import bind_parameters

URL = "s3://lakes/read"
SETTINGS = LakeSettings()
TABLES = ("blocks", "transactions", "messages", "account_states")
SOME_PUTS = 3
QUESTIONS: dict[str, dict[str, object]] = {
    "v3/seqno_ranges": {},
    "v3/blocks": {"limit": 50, "offset": 0},
    "v3/accounts_by_balance": {"limit": 5, "offset": 0},
}


@pytest.fixture(scope="module")
def exported(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of two days, exported to the URL."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (CREDENTIALS | {"AWS_ENDPOINT_URL": s3_server.endpoint}).items():
            patch.setenv(name, value)
        httpx.put(f"{s3_server.endpoint}/lakes")
        lake = tmp_path_factory.mktemp("exported")
        for first, last in ((1, 10), (16, 20)):
            commit_rows(lake, first, last, tables=TABLES)
        assert copy_lake(lake, URL).files == len(read_state(lake).files)
        assert copy_lake(lake, URL).commits == 0
    return lake


def test_a_lake_arrives_as_it_was(s3: S3Server, exported: Path, tmp_path: Path) -> None:
    """A copy cut off in the middle of a file resumes."""
    lake = tmp_path / "lake"
    last = read_state(exported).files[-1].path

    def cut(method: str, path: str) -> str | None:
        return "cut" if method == "GET" and path.endswith(last) else None

    with s3.failing(cut), pytest.raises(StorageError, match=r"broke off.*run the same command"):
        copy_lake(URL, lake)
    report = copy_lake(URL, lake)
    assert read_state(lake) == read_state(exported)
    data = {path: held for path, held in file_bytes(exported).items() if path[0] != "_"}
    assert {path: held for path, held in file_bytes(lake).items() if path[0] != "_"} == data
    assert copy_lake(URL, lake).commits == 0
    assert report.files > 0


def test_an_export_goes_on(s3: S3Server, exported: Path) -> None:
    def refuse_after_some(method: str, _path: str) -> str | None:
        puts = sum(method == "PUT" for method, _ in s3.requests)
        return "refuse" if method == "PUT" and puts > SOME_PUTS else None

    place = "s3://lakes/resumed"
    with s3.failing(refuse_after_some), pytest.raises(StorageError, match="refuses: set AWS_ACC"):
        copy_lake(exported, place)
    with pytest.raises(LakeNotFound):
        open_remote(open_storage(place))
    s3.requests.clear()
    report = copy_lake(exported, place)
    files = [path for method, path in s3.requests if method == "PUT" and ".parquet" in path]
    assert len(files) == report.files - SOME_PUTS


def test_an_export_grows_with_its_lake(s3: S3Server, tmp_path: Path) -> None:
    """What its source has merged is removed, and a log with a gap is filled."""
    lake, place = tmp_path / "lake", "s3://lakes/grown"
    for at in (1, 3, 5):
        commit_rows(lake, at, at + 1, tables=TABLES, day="2024-01-01")
        copy_lake(lake, place)
    storage, settings = open_storage(place), LakeSettings(compact_rows=100)
    before = {path for path in storage.list_files(TABLES) if path.endswith(".parquet")}
    assert before == {file.path for file in read_state(lake).files}
    compact_lake(lake, settings)
    commit_rows(lake, 7, 8, tables=TABLES, day="2024-01-01")
    assert copy_lake(lake, place).commits >= 2
    after = {path for path in storage.list_files(TABLES) if path.endswith(".parquet")}
    assert after == {file.path for file in read_state(lake).files}
    assert open_remote(storage).state == read_state(lake)
    storage.remove("_log/2.json")
    copy_lake(lake, place)
    assert storage.read("_log/2.json") == (lake / "_log" / "2.json").read_bytes()
    assert s3.requests


def test_what_is_damaged_here_is_not_copied(s3: S3Server, exported: Path, tmp_path: Path) -> None:
    lake = shutil.copytree(exported, tmp_path / "lake")
    damaged = read_state(lake).files[-1]
    flip_value(lake / damaged.path, b"\0")
    with pytest.raises(SourceRefused, match=f"{damaged.path}.* digest"):
        copy_lake(lake, "s3://lakes/damaged")
    assert httpx.get(f"{s3.endpoint}/lakes/damaged/{damaged.path}").status_code == 404


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("s3://missing/read", "no such bucket at http.*: create it"),
        ("s3:///read", "names no bucket: write s3://bucket/prefix"),
    ],
)
def test_places_that_are_none(s3: S3Server, tmp_path: Path, place: str, words: str) -> None:
    with pytest.raises(StorageError, match=words):
        copy_lake(place, tmp_path / "lake")
    assert not (tmp_path / "lake").exists()
    assert not [path for _, path in s3.requests if path.startswith("/lakes")]


@pytest.mark.usefixtures("s3")
def test_a_prefix_without_a_lake(tmp_path: Path) -> None:
    with pytest.raises(CopyRefused, match=r"holds no lake: it has no _log/1.json"):
        copy_lake("s3://lakes/other", tmp_path / "lake")
    with (
        pytest.raises(LakeNotFound, match="holds no lake"),
        open_to_ask("s3://lakes/other", None, SETTINGS),
    ):
        pass


@pytest.mark.usefixtures("s3")
def test_a_closed_port(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StorageError, match=r"127\.0\.0\.1:9 cannot be reached"):
        copy_lake(URL, tmp_path / "lake")


def test_refused_requests(s3: S3Server, tmp_path: Path) -> None:
    with (
        s3.failing(lambda _method, _path: "refuse"),
        pytest.raises(StorageError, match="refuses: set AWS_ACCESS_KEY_ID"),
    ):
        copy_lake(URL, tmp_path / "lake")


def test_a_damaged_object_is_not_committed(s3: S3Server, exported: Path, tmp_path: Path) -> None:
    damaged = next(each for each in read_state(exported).files if each.rows)
    lake = tmp_path / "lake"

    def flip(method: str, path: str) -> str | None:
        # The footer is right: only the row bytes reveal it.
        return "flip" if method == "GET" and path.endswith(damaged.path) else None

    with s3.failing(flip), pytest.raises(SourceRefused, match=damaged.path):
        copy_lake(URL, lake)
    with pytest.raises(LakeNotFound):
        open_snapshot(lake)
    assert not (lake / damaged.path).exists()


def test_own_tables_are_read_where_they_are(s3: S3Server, tmp_path: Path) -> None:
    lake, url = tmp_path / "lake", "s3://lakes/own"
    commit_rows(lake, 1, 10, tables=TABLES)
    statement = "select day, count(*) as n, sum(value) as total from messages group by all"
    add_table(lake, OwnTable("totals", statement, "day"), SETTINGS)
    for path in filter(Path.is_file, lake.rglob("*")):
        place = f"{s3.endpoint}/lakes/own/{path.relative_to(lake).as_posix()}"
        assert httpx.put(place, content=path.read_bytes()).status_code == 200
    expected = connect(open_snapshot(lake), SETTINGS).sql("from totals order by all").fetchall()
    assert expected
    with open_to_ask(url, None, SETTINGS) as (_, connection):
        assert connection.sql("from totals order by all").fetchall() == expected
    assert tonlake.open(url).sql("from totals order by all").fetchall() == expected


def test_only_files_of_the_asked_days_are_opened(s3: S3Server, exported: Path) -> None:
    with open_to_ask(URL, None, SETTINGS) as (_, connection):
        s3.requests.clear()
        query = "select count(*), max(lt) from transactions where day = '2024-01-17'"
        found = connection.execute(query).fetchall()
    assert found == connect(open_snapshot(exported), statement=query).execute(query).fetchall()
    opened = {path for _, path in s3.requests if path.endswith(".parquet")}
    assert len(opened) == 1
    assert "/transactions/day=2024-01-17/" in opened.pop()


@pytest.mark.usefixtures("s3")
def test_each_snapshot_can_be_queried(exported: Path) -> None:
    query = "select count(*), min(mc_seqno), max(mc_seqno) from blocks"
    for number in (1, 2, None):
        snapshot = open_snapshot(exported, number)
        expected = connect(snapshot, statement=query).execute(query).fetchall()
        with open_to_ask(URL, number, SETTINGS) as (_, connection):
            assert connection.execute(query).fetchall() == expected
    with (
        pytest.raises(SnapshotNotFound, match="has commits 1 to 2, and no 3"),
        open_to_ask(URL, 3, SETTINGS),
    ):
        pass


@pytest.mark.usefixtures("s3")
def test_named_queries_have_the_same_answers(exported: Path) -> None:
    here = connect(open_snapshot(exported), SETTINGS)
    with open_to_ask(URL, None, SETTINGS) as (snapshot, there):
        assert snapshot.ranges == open_snapshot(exported).ranges
        for name, values in QUESTIONS.items():
            query = load_queries()[name]
            bound = bind_parameters(query, values)
            expected = here.execute(query.sql, bound).fetchall()
            assert expected
            assert there.execute(query.sql, bound).fetchall() == expected, name


@pytest.mark.usefixtures("s3")
def test_the_command(exported: Path, tmp_path: Path) -> None:
    query = "select workchain, count(*) as n from transactions group by all order by all"
    answers = []
    for place in (URL, str(exported)):
        done = run("sql", query, "--lake", place, "--format", "json")
        assert done.exit_code == 0, done.output
        answers.append(json.loads(done.stdout))
    assert answers[0] == answers[1]
    assert answers[0]
    refused = run("sql", f"from '{tmp_path}/x.parquet'", "--lake", URL)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: ")


def test_a_build_without_a_client() -> None:
    code = f"""
import sys
sys.modules["pyarrow._s3fs"] = None
from tonlake.lake.storage.storage import open_storage
open_storage("{URL}")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "StorageError" in done.stderr
    assert "the one-file binary has no S3 client: install tonlake with pip" in done.stderr


@pytest.mark.usefixtures("s3")
def test_a_part_of_a_lake(exported: Path) -> None:
    part, place = Selection(tables=("blocks", "messages")), "s3://lakes/part"
    copy_lake(exported, place, part)
    done = run("sql", "from transactions", "--lake", place)
    assert "a copy without the table transactions" in done.stderr
    with open_to_ask(place, None, SETTINGS) as (snapshot, connection):
        rows = connection.execute("select count(*) from messages").fetchone()
    assert rows == (40,)
    assert snapshot.ranges == read_state(exported).ranges
    with pytest.raises(CopyRefused, match="pull that into a new folder"):
        copy_lake(exported, place, Selection("2024-01-02"))
