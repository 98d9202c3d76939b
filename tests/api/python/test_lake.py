"""A lake in Python: statements, named queries, snapshots, threads, and a lake in object storage."""

import base64
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from threading import Thread

import pytest

import tonlake
from tests.conftest import Facts
from tests.lake.rows import commit_rows
from tests.s3 import S3Server
from tonlake.api.errors import RequestInvalid
from tonlake.ingest.errors import SignatureInvalid
from tonlake.lake.copy.pull import copy_lake
from tonlake.lake.errors import LakeCorrupt, QueryError, SnapshotNotFound
from tonlake.lake.log.state import read_state
from tonlake.queries.errors import ParameterMismatch, QueryUnknown

TABLES = ("blocks", "transactions", "messages", "account_states")
COUNT = "select count(*) from transactions"


def test_a_statement_takes_parameters(lake: tonlake.Lake, facts: Facts) -> None:
    found = lake.sql("select hash from main.transactions where lt <= $most", most=10**18)
    assert len(found) == len(facts.transactions)
    assert lake.sql("select $a + $b as sum", a=1, b=2).fetchall() == [(3,)]


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("create table t (a int)", "statements that read the lake"),
        ("copy blocks to '/tmp/blocks.csv'", "statements that read the lake"),
        ("select 1; select 2", "exactly one statement"),
        ("select from_nowhere", "from_nowhere"),
        ("select $a", "a"),
        ("from read_csv('/etc/passwd')", "/etc/passwd"),
    ],
)
def test_wrong_statements_are_refused(lake: tonlake.Lake, statement: str, complaint: str) -> None:
    with pytest.raises(QueryError, match=complaint):
        lake.sql(statement)


def test_named_queries_give_the_types_of_their_columns(lake: tonlake.Lake) -> None:
    full = lake.query("v3/blocks", workchain=-1, limit=3)
    assert full.fetchall() == lake.query("blocks", workchain=-1, limit=3).fetchall()
    none = lake.query("blocks", workchain=7, limit=3)
    assert (len(none), none.columns) == (0, full.columns)
    assert none.arrow().schema.field("seqno").type == full.arrow().schema.field("seqno").type


def test_named_queries_read_bytes_as_hex(lake: tonlake.Lake) -> None:
    ((tx_hash,),) = lake.sql("select hash from transactions order by lt limit 1").fetchall()
    by_bytes = lake.query("transaction_keys_by_hash", hashes=[tx_hash])
    by_text = lake.query("transaction_keys_by_hash", hashes=tx_hash.hex())
    assert by_text.fetchall() == by_bytes.fetchall()
    assert len(by_text) == 1


def test_wrong_queries_name_what_is_there(lake: tonlake.Lake) -> None:
    with pytest.raises(QueryUnknown, match="did you mean v3/jetton_masters"):
        lake.query("jeton_masters")
    with pytest.raises(QueryUnknown, match="v3/transactions"):
        lake.query("v3/transactions", keys=[])
    with pytest.raises(ParameterMismatch, match="limit"):
        lake.query("v3/blocks")
    with pytest.raises(ParameterMismatch, match="takes no 'limits'"):
        lake.query("v3/blocks", limits="1")


def test_every_thread_gets_its_answers(lake: tonlake.Lake) -> None:
    def ask(number: int) -> tuple[int, int]:
        ((found,),) = lake.sql("select $number::int from blocks limit 1", number=number).fetchall()
        return found, len(lake.query("blocks", limit=number))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(1, 40))) == [(n, n) for n in range(1, 40)]


def test_a_lake_stays_at_its_commit(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    commit_rows(folder, 1, 10, tables=TABLES)
    before = tonlake.open(folder)
    held = before.sql(COUNT).fetchall()
    commit_rows(folder, 11, 20, tables=TABLES)
    assert before.sql(COUNT).fetchall() == held
    after = before.at()
    assert (before.snapshot, after.snapshot) == (1, 2)
    assert after.sql(COUNT).fetchall() > held
    assert after.at(1).sql(COUNT).fetchall() == held
    assert after.ranges == ((1, 20),)
    with pytest.raises(SnapshotNotFound, match="9"):
        after.at(9)


def test_commits_come_as_they_are_made(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    commit_rows(folder, 1, 10, tables=TABLES)
    lake = tonlake.open(folder)
    assert list(lake.follow(poll_s=0.01, timeout_s=0.02)) == []
    writer = Thread(target=lambda: [commit_rows(folder, n, n, tables=TABLES) for n in (11, 12)])
    writer.start()
    found = [
        (commit.number, commit.last_mc_seqno, lake.at(commit.number).ranges)
        for commit in islice(lake.follow(poll_s=0.01, timeout_s=30), 2)
    ]
    writer.join()
    assert found == [(2, 11, ((1, 11),)), (3, 12, ((1, 12),))]


def test_damage_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    commit_rows(folder, 1, 10, tables=TABLES)
    lake = tonlake.open(folder)
    path = next(file.path for file in read_state(folder).files if file.table == "blocks")
    (folder / path).write_bytes(b"no Parquet")
    for asked in (lake, tonlake.open(folder)):
        with pytest.raises(LakeCorrupt, match=path):
            asked.sql("from blocks")
        assert len(asked.sql("from transactions")) > 0
    with pytest.raises(LakeCorrupt, match=path):
        tonlake.open(folder).table("blocks")


def test_a_lake_in_object_storage_answers_the_same(s3: S3Server, tmp_path: Path) -> None:
    """In every thread: what Arrow reads is registered for each connection."""
    folder, url = tmp_path / "lake", "s3://lakes/python"
    for first, last in ((1, 10), (16, 20)):
        commit_rows(folder, first, last, tables=TABLES)
    copy_lake(folder, url)
    here, there = tonlake.open(folder), tonlake.open(url)
    statement = "select day, count(*) from latest_account_states group by all order by all"
    expected = here.sql(statement).fetchall()
    blocks = here.query("blocks", limit=50).fetchall()

    def ask(_number: int) -> bool:
        asked = there.query("blocks", limit=50).fetchall() == blocks
        return asked and there.sql(statement).fetchall() == expected

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(8)))
    with pytest.raises(SnapshotNotFound, match="only a local lake"):
        next(there.follow())
    assert s3.requests


def test_the_demo_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = tonlake.demo()
    assert first.ranges == ((1, 238),)
    (folder,) = (tmp_path / "tonlake").iterdir()
    inode = folder.stat().st_ino
    assert tonlake.demo().sql(COUNT).fetchall() == first.sql(COUNT).fetchall()
    assert folder.stat().st_ino == inode
    shutil.rmtree(folder)
    folder.mkdir()  # an empty folder is no lake, and does not stand in the way
    assert tonlake.demo().ranges == first.ranges


def test_a_body_is_decoded(lake: tonlake.Lake) -> None:
    ((boc,),) = lake.sql("select body from messages where opcode = 260734629 limit 1").fetchall()
    said = tonlake.decode(boc)
    assert said["@type"] == "jetton_transfer"
    assert said == tonlake.decode(boc.hex()) == tonlake.decode(base64.b64encode(boc).decode())
    for other in (b"", b"no cells", "zz", "b5ee9c72010101010006000008deadbeef"):
        with pytest.raises(RequestInvalid, match="cannot be decoded"):
            tonlake.decode(other)


def test_other_names_are_missing() -> None:
    assert {"Lake", "open", "demo", "decode"} <= set(dir(tonlake))
    with pytest.raises(AttributeError, match="no attribute 'shut'"):
        getattr(tonlake, "shut")  # noqa: B009 - mypy knows that it is not there


def test_a_signature_is_a_table(lake: tonlake.Lake) -> None:
    transfer = "transfer#0f8a7ea5 query_id:uint64 amount:Coins destination:MsgAddress = Body"
    by_text = lake.sql("select destination, amount from transfer order by all", signature=transfer)
    by_name = lake.sql(
        "select destination, amount from jetton_transfer where amount >= $least order by all",
        signature=["jetton_transfer"],
        least=0,
    )
    assert by_text.fetchall() == by_name.fetchall() != []
    grouped = "g#0f8a7ea5 [ query_id:uint64 to:[ amount:Coins ] ] destination:MsgAddress = Body"
    group = lake.sql('select "to" from g order by all', signature=grouped).fetchall()
    assert {json.loads(of)["amount"]["@type"] for (of,) in group} == {"nanocoins"}
    with pytest.warns(UserWarning, match="do not fit"):
        assert not len(lake.sql("from t", signature="t#0f8a7ea5 a:bits1023 = Body"))
    with pytest.raises(SignatureInvalid, match="no layout"):
        lake.sql("select 1", signature="nothing")
    with pytest.raises(QueryError, match="already"):
        lake.sql("select 1", signature="v_swaps#00000001 = Body")
