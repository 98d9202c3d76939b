"""``POST /api/scan`` over real HTTP, and its client ``tonlake.connect``."""

import io
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import tonlake
from tests.api.growth import Growth, serve
from tonlake.api.errors import UpstreamRefusal
from tonlake.api.scan.frames import FOOTER, MARK, SCAN_TYPES
from tonlake.api.scan.opening import MAX_TABLES, MAX_VALUES

SCAN: dict[str, Any] = {
    "table": "messages",
    "where": [{"opcode": ["0x0f8a7ea5"]}, {"transaction.aborted": [True], "direction": ["in"]}],
    "columns": ["mc_seqno", "tx_lt", "opcode", "destination", "body.decoded"],
}
HOSTILE = (
    "",
    "[]",
    "null",
    '{"table": 1}',
    '{"table": "messages", "where": {"opcode": [1]}}',
    '{"table": "messages", "where": [{"opcode": 1}]}',
    '{"table": "messages", "where": [{"opcode": ["0xzz"]}]}',
    '{"table": "messages", "where": [{"opcode": [4294967296]}]}',
    '{"table": "messages", "where": [{"opcode": [true]}]}',
    '{"table": "messages", "where": [{"destination": ["x"]}]}',
    '{"table": "messages", "where": [{"tx_hash": ["00"]}]}',
    '{"table": "messages", "where": [{"body": ["0"]}]}',
    '{"table": "messages", "where": [{"nothing.at_all": ["00"]}]}',
    '{"table": "messages", "columns": ["mc_seqno", "mc_seqno"]}',
    '{"table": "messages", "columns": ["transaction."]}',
    '{"table": "state_cells"}',
    "{}",
    '{"tables": {}}',
    '{"tables": {"messages": {}}, "table": "messages"}',
    '{"tables": {"messages": {}}, "columns": ["value"]}',
    '{"tables": {"messages": {"from": 1}}}',
    '{"tables": {"messages": {}, "nothing": {}}}',
    '{"tables": {"messages": {"columns": ["value", "value"]}}}',
    json.dumps({"tables": {f"t{at}": {} for at in range(MAX_TABLES + 1)}}),
    '{"table": "a", "signature": ""}',
    '{"table": "a", "signature": "a#00000001 = "}',
    '{"table": "a", "signature": "a#00000001 x:a = a"}',
    '{"table": "a", "signature": "messages#00000001 x:uint8 = A"}',
    '{"table": "messages", "signature": "messages#00000001 x:uint8 = A"}',
    '{"table": "b", "signature": "a#00000001 x:uint8 = A"}',
    '{"table": "a", "signature": "a#00000001 x:uint8 = A", "columns": ["y"]}',
    '{"table": "a", "signature": "a#00000001 x:uint8 = A", "columns": ["day"]}',
    '{"table": "a", "signature": "a#00000001 x:uint8 = A", "where": [{"x": ["y"]}]}',
    '{"table": "a", "signature": "a#00000001 x:uint8 = A", "where": [{"x": [1e30]}]}',
    '{"table": "a", "signature": "a#00000001 x:uint8 = A", "where": [{"time": ["2026"]}]}',
    '{"table": "a", "signature": "a#00000001 x:uint8 = A", "where": [{"source": ["x"]}]}',
    '{"table": "a", "signature": "a#00000001 x:uint8 = A", "where": [{"tx_hash": ["0"]}]}',
    json.dumps({"table": "a", "signature": "a#00000001 x:" + "^" * 60_000 + "Cell = A"}),
    '{"tables": {"mc_seqno": {}}, "signature": "mc_seqno#00000001 x:uint8 = A"}',
    '{"table": "../blocks"}',
    '{"table": "messages", "from": -1}',
    '{"table": "messages", "from": "yesterday"}',
    '{"table": "messages", "from": "snapshot:x"}',
    json.dumps({"table": "messages", "from": "9" * 5000}),
    json.dumps({"table": "messages", "to": "snapshot:" + "9" * 5000}),
    '{"table": "messages", "from": 9, "to": 3}',
    '{"table": "messages", "to": 99999999}',
    '{"table": "messages", "to": "1970-01-01"}',
    '{"table": "messages", "cursor": "1"}',
    '{"table": "messages", "cursor": "1-1-0000000000000000"}',
    '{"table": "messages", "cursor": "1-999999-00"}',
    '{"table": "messages", "cursor": "1-1-00", "from": 1}',
    '{"table": "messages", "limit": 0}',
    '{"table": "messages", "limit": 1e99}',
    '{"table": "messages", "where": ' + "[" * 5000 + "]" * 5000 + "}",
    json.dumps({"table": "messages", "where": [{"opcode": [7] * (MAX_VALUES + 1)}]}),
)


@pytest.fixture(scope="module")
def url(demo_lake: Path) -> Iterator[str]:
    with serve(demo_lake, sql={"enabled": True}) as server:
        yield server.url


def _post(url: str, body: Any, accept: str = "*/*") -> httpx.Response:
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    headers = {"Accept": accept}
    return httpx.post(f"{url}/api/scan", content=content, headers=headers, timeout=60)


def test_every_form_has_the_same_rows(url: str, demo_lake: Path) -> None:
    batches = list(tonlake.open(demo_lake).scan("messages", SCAN["where"], columns=SCAN["columns"]))
    expected = pa.concat_tables(batch.rows.arrow() for batch in batches)
    assert expected.num_rows > 50
    last = {"cursor": batches[-1].cursor, "height": batches[-1].height}
    found = {form: _post(url, SCAN, media) for form, media in SCAN_TYPES.items()}
    for form, answer in found.items():
        assert answer.status_code == 200
        assert answer.headers["content-type"].partition(";")[0] == SCAN_TYPES[form]
    assert pa.ipc.open_stream(found["arrow"].content).read_all().equals(expected)
    file = pq.ParquetFile(io.BytesIO(found["parquet"].content))
    assert file.read().cast(expected.schema).equals(expected)
    assert json.loads(file.metadata.metadata[FOOTER]) == last
    lines = [json.loads(line) for line in found["ndjson"].text.splitlines()]
    assert lines[-1] == {MARK: last}
    assert [line["tx_lt"] for line in lines if MARK not in line] == expected["tx_lt"].to_pylist()
    assert pa.csv.read_csv(io.BytesIO(found["csv"].content)).num_rows == expected.num_rows
    assert _post(url, SCAN).content == found["arrow"].content
    assert _post(url, SCAN, "application/json").text == found["ndjson"].text


TRANSFER = "transfer#0f8a7ea5 query_id:uint64 amount:Coins destination:MsgAddress = Body"
SEVERAL: dict[str, Any] = {
    "tables": {
        "transfer": {"columns": ["amount", "destination"]},
        "blocks": {"where": [{"workchain": [-1]}], "columns": ["seqno"]},
    },
    "signature": TRANSFER,
}


def test_several_tables_and_a_signature_in_every_form(url: str, demo_lake: Path) -> None:
    tables, signature = SEVERAL["tables"], SEVERAL["signature"]
    local = list(tonlake.open(demo_lake).scan(tables, signature=signature))
    rows = pa.concat_tables(batch.rows.arrow() for batch in local)
    assert rows["transfer"].null_count < rows.num_rows - 50
    with tonlake.connect(url) as remote:
        found = list(remote.scan(tables, signature=signature))
    assert pa.concat_tables(batch.rows.arrow() for batch in found).equals(rows)
    assert found[0].table("transfer").fetchall() == local[0].table("transfer").fetchall()
    lines = [json.loads(line) for line in _post(url, SEVERAL, SCAN_TYPES["ndjson"]).iter_lines()]
    seqnos = [line["blocks"]["seqno"] for line in lines if line.get("blocks")]
    assert seqnos == [seqno for batch in local for (seqno,) in batch.table("blocks")]
    file = pq.ParquetFile(io.BytesIO(_post(url, SEVERAL, SCAN_TYPES["parquet"]).content))
    assert file.read().cast(rows.schema).to_pylist() == rows.to_pylist()
    csv = pa.csv.read_csv(io.BytesIO(_post(url, SEVERAL, SCAN_TYPES["csv"]).content))
    assert csv.num_rows == rows.num_rows


@pytest.mark.parametrize("body", HOSTILE)
def test_hostile_bodies(url: str, demo_lake: Path, body: str) -> None:
    answer = _post(url, body)
    assert answer.status_code in (404, 422), answer.text[:300]
    error = answer.json()["error"]
    assert 10 < len(error) < 1500
    assert str(demo_lake) not in error


def test_numbers_longer_than_any_are_refused_unread(url: str) -> None:
    """To make a decimal of a million hex digits takes 20 seconds, in which nothing else runs."""
    chosen = {"where": [{"amount": ["0x" + "f" * 1000]}]}
    for scan in (
        {"table": "jetton_transfers"},
        {"table": "transfer", "signature": TRANSFER},
    ):
        answer = _post(url, scan | chosen)
        assert answer.status_code == 422
        assert "the number has 1,002 characters" in answer.json()["error"]


def test_values_that_do_not_fit_are_named(url: str) -> None:
    for column, value, fault in (
        ("value", 1 << 64, "18446744073709551616 does not fit in 64 bits"),
        ("value", str(-1 << 64), "'-18446744073709551616' does not fit in 64 bits"),
        ("opcode", "0x", "'0x' is not a number"),
        ("opcode", 1 << 32, "4294967296 does not fit in 32 bits"),
    ):
        answer = _post(url, {"table": "messages", "where": [{column: [value]}]})
        assert answer.status_code == 422
        assert answer.json()["error"].endswith(fault)
    assert _post(url, {"table": "messages", "where": [{"opcode": [-1 << 31]}]}).status_code == 200


def test_bodies_that_are_nearly_right(url: str) -> None:
    """Whatever a byte is changed to, there is an answer, and no fault of the service."""
    chance, right = random.Random(1), json.dumps(SCAN | {"limit": 3}).encode()  # noqa: S311 - no secret
    with httpx.Client(timeout=60) as client:
        for _ in range(150):
            body = bytearray(right)
            for _ in range(chance.randint(1, 3)):
                body[chance.randrange(len(body))] = chance.randrange(256)
            answer = client.post(f"{url}/api/scan", content=bytes(body))
            assert answer.status_code in (200, 404, 422), bytes(body)


def test_a_table_that_cannot_be_scanned_exists(url: str) -> None:
    answer = _post(url, {"table": "state_cells"})
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("table state_cells cannot be scanned")


def test_follow_needs_a_form_with_marks(url: str) -> None:
    answer = _post(url, SCAN | {"follow": True}, "text/csv")
    assert answer.status_code == 422
    assert "follow needs" in answer.json()["error"]


def test_a_client_has_a_quarter_of_all_scans(demo_lake: Path) -> None:
    body = json.dumps({"table": "blocks", "follow": True})
    with serve(demo_lake, scan={"clients": 8}) as server, httpx.Client(timeout=60) as client:
        streams = [client.stream("POST", f"{server.url}/api/scan", content=body) for _ in range(2)]
        answers = [stream.__enter__() for stream in streams]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert _post(server.url, body).status_code == 429
        for stream in streams:
            stream.__exit__(None, None, None)
        for _ in range(100):
            again = _post(server.url, SCAN)
            if again.status_code == 200:
                break
        assert again.status_code == 200, "places come back when clients go away"


def test_a_remote_lake_is_like_a_local_one(url: str, demo_lake: Path) -> None:
    local = tonlake.open(demo_lake)
    statement = "select mc_seqno, count(*) as n from transactions group by all order by all"
    with tonlake.connect(url) as remote:
        assert remote.sql(statement).fetchall() == local.sql(statement).fetchall()
        chosen = "select count(*) from transfer where source <> $source and time > $time"
        since = {"source": "it's", "time": datetime(2001, 1, 1, tzinfo=UTC)}
        given = [one.sql(chosen, signature=TRANSFER, **since) for one in (remote, local)]
        assert given[0].fetchall() == given[1].fetchall() != [(0,)]
        for name, values in (
            ("accounts_by_balance", {"limit": 5}),
            ("v3/blocks", {"workchain": -1, "limit": 3}),
        ):
            expected = local.query(name, **values).arrow()
            assert remote.query(name, **values).arrow().to_pylist() == expected.to_pylist()
        where = {"direction": "in", "value": None}
        scanned = [list(each.scan("messages", where, limit=40)) for each in (remote, local)]
        rows, own = (pa.concat_tables(one.rows.arrow() for one in each) for each in scanned)
        assert rows.equals(own)
        assert scanned[0][-1][1:] == scanned[1][-1][1:]
        address = local.sql("select ton_address(workchain, account) from transactions").fetchall()
        account = remote.account(address[0][0])
        assert 1 <= len(account.transactions(limit=3)) <= 3
        assert len(account.states()) == 1
        with pytest.raises(UpstreamRefusal, match="does not exist here; there are: opcode"):
            next(remote.scan("messages", {"opcod": 1}))
        with pytest.raises(UpstreamRefusal, match="error converting value"):
            remote.account("x").states()


def test_a_remote_scan_follows(growth: Growth) -> None:
    growth.show()
    heights = []
    with serve(growth.lake_dir) as server, tonlake.connect(server.url) as remote:
        for batch in remote.scan("transactions", columns=["mc_seqno"], follow=True):
            heights.append(batch.height)
            if growth.shown == growth.commits:
                break
            growth.show()
    lake = tonlake.open(growth.lake_dir)
    assert heights[0] == 15
    assert heights == sorted(set(heights))
    assert heights[-1] <= lake.ranges[-1][1]
