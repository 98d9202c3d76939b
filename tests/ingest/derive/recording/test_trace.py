"""Decoding of recorded lines, and of files into lakes with the recorded traces."""

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.recording.replay import replay_traces
from tonlake.ingest.derive.recording.trace import decode_line, read_recording
from tonlake.ingest.errors import RecordingMalformed
from tonlake.ingest.settings import IngestSections
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

RECORDING = "data/classifier/traces.jsonl.zst"
ACCOUNT = f"-1:{'33' * 32}"


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def read_lines(path: Path) -> list[dict[str, Any]]:
    with pa.input_stream(str(path), compression="zstd") as stream:
        return [json.loads(line) for line in stream.read().splitlines()]


@pytest.fixture(scope="module")
def recording(shared: Path) -> Path:
    return shared / RECORDING


@pytest.fixture(scope="module")
def lake_dir(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    report = replay_traces(recording, folder, IngestSections())
    contracts = {"jetton_wallets": 124, "nft_items": 15, "nft_sales": 2, "dex_pools": 7}
    moves = {"jetton_transfers": 61, "jetton_burns": 5, "nft_transfers": 2}
    assert report.rows == {"transactions": 685, "messages": 1324} | contracts | moves
    assert report.skipped == []
    return folder


def rows_of(lake_dir: Path, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        connect(open_snapshot(lake_dir)).table(table).to_arrow_table().to_pylist()
    )
    return rows


def test_traces_are_those_recorded(recording: Path, lake_dir: Path) -> None:
    made = {encode(row["trace_id"]): row for row in rows_of(lake_dir, "traces")}
    lines = read_lines(recording)
    assert len(made) == len(lines) == 73
    for line in lines:
        expected, row = line["trace"], made[line["trace"]["trace_id"]]
        assert encode(row["external_hash"]) == expected["external_hash"]
        names = ("mc_seqno_start", "mc_seqno_end", "start_lt", "end_lt", "start_utime", "end_utime")
        assert [row[name] for name in names] == [expected[name] for name in names]
        assert row["state"] == expected["state"]
        assert row["transactions"] == expected["nodes_"]
        assert row["messages"] == expected["edges_"]
        assert row["pending_messages"] == expected["pending_edges_"]
    assert rows_of(lake_dir, "open_edges") == []


def test_edges_roots_and_order_are_those_recorded(recording: Path, lake_dir: Path) -> None:
    made = rows_of(lake_dir, "transaction_traces")
    made.sort(key=lambda row: (row["lt"], row["workchain"], row["account"]))
    for line in read_lines(recording):
        trace_id = base64.b64decode(line["trace"]["trace_id"])
        mine = [row for row in made if row["trace_id"] == trace_id]
        # Edges are recorded as parent, child and message.
        edges = {(parent, child) for parent, child, _message in line["links"]["edges"]}
        assert edges == {
            (encode(row["parent_hash"]), encode(row["hash"])) for row in mine if row["parent_hash"]
        }
        assert [row["hash"] for row in mine if row["parent_hash"] is None] == [trace_id]
        by_lt = sorted(line["transactions"], key=lambda row: (row["lt"], row["account"]))
        assert [encode(row["hash"]) for row in mine] == [row["hash"] for row in by_lt]


def test_a_root_created_by_the_validators_is_recognized(lake_dir: Path) -> None:
    edges = {row["edge"] for row in rows_of(lake_dir, "transaction_traces")}
    assert edges == {"ext", "ord", "sys"}


def test_messages_are_those_recorded(recording: Path, lake_dir: Path) -> None:
    made = {(row["tx_hash"], row["msg_hash"]): row for row in rows_of(lake_dir, "messages")}
    same = ("value", "fwd_fee", "ihr_fee", "created_lt", "created_at", "opcode", "ihr_disabled")
    for line in read_lines(recording):
        for transaction in line["transactions"]:
            for message in [transaction["in_msg"], *(transaction["out_msgs"] or [])]:
                tx_hash = base64.b64decode(transaction["hash"])
                row = made[tx_hash, base64.b64decode(message["msg_hash"])]
                for name in (*same, "bounce", "bounced", "import_fee"):
                    assert row[name] == message[name], name
                assert encode(row["body_hash"]) == message["body_hash"]
                hash_ = row["init_state_hash"]
                assert (hash_ and encode(hash_)) == message["init_state_hash"]
                for end in ("source", "destination"):
                    account = row[end]
                    text = account and f"{row[f'{end}_workchain']}:{account.hex().upper()}"
                    assert text == message[end]


def test_columns_that_were_lost_are_null(lake_dir: Path) -> None:
    rows = rows_of(lake_dir, "transactions")
    assert {row["shard"] for row in rows} == {None}
    assert {row["boc"] for row in rows} == {None}
    assert {row["storage_fees_collected"] for row in rows} == {None}
    lost = [row for row in rows_of(lake_dir, "messages") if row["destination_kind"] is None]
    assert len(lost) == 11
    assert {row["kind"] for row in lost} == {"ext_out"}


def test_a_second_run_finds_everything_there(recording: Path, lake_dir: Path) -> None:
    before = open_snapshot(lake_dir).number
    report = replay_traces(recording, lake_dir, IngestSections())
    assert report.commits == 0
    assert len(report.skipped) == before
    assert open_snapshot(lake_dir).number == before


def make_line(**changes: Any) -> dict[str, Any]:
    """Return a line with one transaction, caused by an external message."""
    builder = CellBuilder().store_uint(0b10, 2).store_uint(0b00, 2)
    builder.store_uint(0b100, 3).store_int(-1, 8).store_bytes(b"\x33" * 32)
    cell = builder.store_coins(7).store_uint(0b00, 2).store_uint(0xDEADBEEF, 32).end()
    message = {
        "msg_hash": encode(builder.tree.hash(cell)),
        "source": None,
        "destination": f"-1:{'33' * 32}",
        "msg_boc": encode(serialize_boc(builder.tree, (cell,))),
    }
    zero = encode(bytes(32))
    transaction = {
        "account": f"-1:{'33' * 32}",
        "lt": 41,
        "hash": encode(b"\x01" * 32),
        "block_seqno": 7,
        "mc_block_seqno": 7,
        "now": 86_400,
        "prev_trans_hash": zero,
        "prev_trans_lt": 0,
        "orig_status": "active",
        "end_status": "active",
        "total_fees": 5,
        "account_state_hash_before": zero,
        "account_state_hash_after": zero,
        "descr": "ord",
        "compute_exit_code": 33,
        "in_msg": message,
        "out_msgs": [],
    }
    return {"transactions": [transaction | changes]}


def test_a_line_becomes_rows() -> None:
    made = decode_line(json.dumps(make_line()).encode())
    assert (made.first_mc_seqno, made.last_mc_seqno, made.day) == (7, 7, "1970-01-02")
    transaction = made.tables["transactions"].to_pylist()[0]
    assert transaction["workchain"] == -1
    assert transaction["account"] == b"\x33" * 32
    assert transaction["compute_exit_code"] == 33
    assert transaction["compute_skipped"] is False
    assert transaction["shard"] is None
    assert transaction["time"].isoformat() == "1970-01-02T00:00:00"
    message = made.tables["messages"].to_pylist()[0]
    assert message["kind"] == "ext_in"
    assert message["import_fee"] == 7
    assert message["opcode"] == 0xDEADBEEF - (1 << 32)
    assert message["destination"] == b"\x33" * 32
    assert transaction["in_msg_hash"] == message["msg_hash"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b'{"transactions": []}',
        b'{"transactions": [{}]}',
        json.dumps(make_line(hash="AAAA")).encode(),
        json.dumps(make_line(hash="no base64!")).encode(),
        json.dumps(make_line(account="-1:33")).encode(),
        json.dumps(make_line(account="here")).encode(),
        json.dumps(make_line(account=f"{1 << 31}:{'33' * 32}")).encode(),
        json.dumps(make_line(lt=1 << 63)).encode(),
        json.dumps(make_line(mc_block_seqno=0)).encode(),
        json.dumps(make_line(now=-1)).encode(),
        json.dumps(make_line(in_msg={"msg_hash": encode(bytes(32))})).encode(),
        json.dumps(
            make_line(in_msg=make_line()["transactions"][0]["in_msg"] | {"msg_boc": "AAAA"})
        ).encode(),
        json.dumps(
            make_line(in_msg=make_line()["transactions"][0]["in_msg"] | {"msg_boc": None})
        ).encode(),
        json.dumps(
            make_line(
                in_msg=make_line()["transactions"][0]["in_msg"] | {"msg_hash": encode(bytes(32))}
            )
        ).encode(),
    ],
)
def test_a_malformed_line_is_named(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "few.jsonl"
    path.write_bytes(json.dumps(make_line()).encode() + b"\n" + line + b"\n")
    with pytest.raises(RecordingMalformed, match=r"few\.jsonl, line 2: "):
        list(read_recording(path))


def test_a_missing_cell_is_reported_with_an_alternative(tmp_path: Path) -> None:
    path = tmp_path / "few.jsonl"
    message = make_line()["transactions"][0]["in_msg"] | {"msg_boc": None}
    path.write_text(json.dumps(make_line(in_msg=message)))
    with pytest.raises(RecordingMalformed, match=r"msg_boc, is missing; tonlake classify reads"):
        list(read_recording(path))


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    path.touch()
    with pytest.raises(RecordingMalformed, match=r"none\.jsonl is empty: it holds no trace"):
        list(read_recording(path))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("JettonWallet", {"balance": [], "jetton": ACCOUNT}),
        ("JettonWallet", {"balance": "1", "jetton": 5}),
        ("JettonWallet", {"balance": "1", "jetton": f"{1 << 40}:{'33' * 32}"}),
        ("NftItem", {"index": None}),
        ("NftSale", {"nft_address": {}}),
        ("NftAuction", {"last_bid": {}}),
        ("DedustPool", {"assets": [7, 8]}),
        ("DedustPool", {"assets": 9}),
    ],
)
def test_a_contract_of_other_fields_is_named(
    kind: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "few.jsonl"
    line = make_line() | {"interfaces": {ACCOUNT: {kind: fields}}}
    path.write_text(json.dumps(line))
    with pytest.raises(RecordingMalformed, match=r"few\.jsonl, line 1: "):
        list(read_recording(path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingMalformed, match=r"gone\.jsonl\.zst cannot be read"):
        list(read_recording(tmp_path / "gone.jsonl.zst"))


def test_traces_that_share_masterchain_blocks_become_one_commit(tmp_path: Path) -> None:
    lines = [
        make_line(),
        make_line(hash=encode(b"\x02" * 32), lt=51),
        make_line(hash=encode(b"\x03" * 32), lt=61, mc_block_seqno=9),
    ]
    path = tmp_path / "three.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    report = replay_traces(path, tmp_path / "lake", IngestSections())
    assert report.commits == 2
    assert open_snapshot(tmp_path / "lake").ranges == ((7, 7), (9, 9))
    # One external message, executed three times.
    assert len(rows_of(tmp_path / "lake", "traces")) == 3


def test_a_repeated_trace_counts_once(tmp_path: Path) -> None:
    first, second = make_line(), make_line(hash=encode(b"\x02" * 32), lt=51)
    grown = {"transactions": first["transactions"] + second["transactions"]}
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join(map(json.dumps, [first, first, grown, second])))
    report = replay_traces(path, tmp_path / "lake", IngestSections())
    assert report.rows["transactions"] == 2
    assert len(rows_of(tmp_path / "lake", "transactions")) == 2


def test_traces_that_share_a_part_are_rejected(tmp_path: Path) -> None:
    one, two, three = (
        make_line(hash=encode(bytes((number,)) * 32), lt=number)["transactions"]
        for number in (1, 2, 3)
    )
    path = tmp_path / "shared.jsonl"
    path.write_text("\n".join(json.dumps({"transactions": t}) for t in (one + two, two + three)))
    with pytest.raises(RecordingMalformed, match=f"transaction {'02' * 32} is in two traces"):
        replay_traces(path, tmp_path / "lake", IngestSections())
    path.write_text(json.dumps({"transactions": one + one}))
    with pytest.raises(RecordingMalformed, match="is in the trace twice"):
        replay_traces(path, tmp_path / "lake", IngestSections())
    assert not (tmp_path / "lake").exists()
